import pytest

from ocsdf_bench.attack import ATTACKS
from ocsdf_bench.dataset import DATASETS
from ocsdf_bench.detector import DETECTORS
from ocsdf_bench.plugin import load_plugins
from ocsdf_bench.protocol import make_split
from ocsdf_bench.scaffold import TEMPLATES, write_plugin
from ocsdf_bench.source import MirrorOrDownload


def test_the_files_written_work_as_they_are(tmp_path):
    load_plugins([write_plugin(kind, f"my-{kind}", tmp_path) for kind in TEMPLATES])
    split = make_split(DATASETS["my-dataset"].load(MirrorOrDownload(offline=True)), "unsupervised", 0)
    detector = DETECTORS["my-detector"].build(seed=0)
    detector.fit(split.X_train)
    assert detector.anomaly_score(split.X_test).shape == (100,)
    assert ATTACKS["my-attack"].run(detector, split.X_test, None, 0.1, None, 0).shape == (10, 100, 3)


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("table", "x", "must be one of detector"),
        ("detector", "../x", "letters, digits"),
        ("detector", "", "a letter"),
    ],
)
def test_what_can_not_be_written_is_a_sentence(tmp_path, kind, name, words):
    with pytest.raises(ValueError, match=words):
        write_plugin(kind, name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_left_alone(tmp_path):
    path = write_plugin("detector", "mine", tmp_path)
    path.write_text("mine")
    with pytest.raises(ValueError, match=r"mine\.py is"):
        write_plugin("detector", "mine", tmp_path)
    assert path.read_text() == "mine"
