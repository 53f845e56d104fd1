import re
from pathlib import Path

import pytest

from ocsdf_bench.plugin import load_plugins
from ocsdf_bench.suite import RunSpec, canonical, parse_only, select
from ocsdf_bench.suite_file import SuiteError, read_suite

load_plugins([Path(__file__).with_name("misbehaving.py")])

GOOD = """\
name = "small"
protocol = "unsupervised"
datasets = ["tiny", {name = "tiny-classes", protocol = "one-versus-rest", normal_classes = ["setosa"]}]
seeds = [0, 1]
radii = [0.1, 1]

[[detectors]]
name = "Centre"
params = {shift = 1, noise = 0.5}

[[detectors]]
name = "Misbehaving"
params = {how = "well"}
datasets = ["tiny"]
row_cap = 10

[[chosen_with_labels]]
name = "Centre-best-shift"
detector = "Centre"
params = {noise = 0.1}
parameter = "shift"
values = [0, 1]

[[attacks]]
name = "noise"
radii = [0.1]
detectors = ["Centre"]
n_rows = 20

[limits]
wall_seconds = 60
"""


def _read(tmp_path, text):
    path = tmp_path / "suite.toml"
    path.write_text(text)
    return read_suite(path)


def _problems(tmp_path, text):
    with pytest.raises(SuiteError) as caught:
        _read(tmp_path, text)
    return caught.value.problems


def test_a_suite_becomes_runs_of_every_data_set_class_detector_and_seed(tmp_path):
    suite = _read(tmp_path, GOOD)
    rows = [(r.dataset, r.normal_class, r.detector, canonical(r.params), r.seed) for r in suite.runs]
    plain = '{"noise":0.5,"shift":1}'
    assert rows[:3] == [
        ("tiny", "", "Centre", plain, 0),
        ("tiny", "", "Centre", plain, 1),
        ("tiny", "", "Misbehaving", '{"how":"well"}', 0),  # deterministic: one seed
    ]
    assert ("tiny-classes", "setosa", "Centre", plain, 1) in rows
    assert suite.n_runs == len(suite.runs) + 4


def test_params_are_exactly_what_the_suite_wrote(tmp_path):
    suite = _read(tmp_path, GOOD)
    (choice, _) = suite.choices
    assert canonical(choice.params) == '{"noise":0.1,"shift":[0,1]}'
    final = choice.finals(choice.candidates[1])[0]
    assert final.detector == "Centre-best-shift"
    assert final.build_params == {"noise": 0.1, "shift": 1}
    assert canonical(final.params) == '{"noise":0.1,"shift":[0,1]}'


def test_a_deterministic_detector_runs_every_seed_where_the_rows_depend_on_it(tmp_path):
    suite = _read(tmp_path, GOOD.replace('"unsupervised"', '"one-class"'))
    assert [r.seed for r in suite.runs if r.detector == "Misbehaving"] == [0, 1]


def test_settings_of_a_detector_override_those_of_the_suite(tmp_path):
    text = GOOD.replace("shift = 1, noise = 0.5}", "shift = 1, noise = 0.5}\nradii = [7]\nseeds = [5]")
    run = _read(tmp_path, text).runs[0]
    assert (run.radii, run.seed, run.wall_seconds) == ((7.0,), 5, 60.0)


def test_an_attack_is_planned_for_the_detectors_it_names(tmp_path):
    suite = _read(tmp_path, GOOD)
    planned = {(r.detector, "shift" in r.params): [a.name for a in r.attacks] for r in suite.runs[:3]}
    assert planned == {("Centre", True): ["noise"], ("Misbehaving", False): []}
    assert suite.runs[0].attacks[0].n_rows == 20
    assert suite.runs[0].attacks[0].required


def test_an_attack_can_be_kept_to_some_seeds(tmp_path):
    suite = _read(tmp_path, GOOD.replace("n_rows = 20", "n_rows = 20\nseeds = [1]"))
    attacked = {r.seed for r in suite.runs if r.attacks}
    assert attacked == {1}
    chosen = _read(tmp_path, GOOD.replace('["Centre"]', '["Centre-best-shift"]\nseeds = [1]')).choices[0]
    finals = chosen.finals(chosen.candidates[0])
    assert {final.seed: len(final.attacks) for final in finals} == {0: 0, 1: 1}
    one = select(suite, {"seed": {"1"}, "detector": {"Centre-best-shift"}}).choices[0]
    assert [final.seed for final in one.finals(one.candidates[0])] == [1]


def test_limits_do_not_change_the_identity_of_a_run(tmp_path):
    before, after = (_read(tmp_path, t).runs[0] for t in (GOOD, GOOD.replace("= 60", "= 61")))
    assert before.fingerprint("d") == after.fingerprint("d")
    assert before.fingerprint("d") != before.fingerprint("other data")


def test_a_radius_changes_the_run_but_not_the_fit(tmp_path):
    before, after = (_read(tmp_path, t).runs[0] for t in (GOOD, GOOD.replace("[0.1, 1]", "[0.1, 2]")))
    assert before.fingerprint("d") != after.fingerprint("d")
    assert before.fit_identity("d") == after.fit_identity("d")


def test_a_spec_survives_json(tmp_path):
    for spec in _read(tmp_path, GOOD).runs:
        assert RunSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ('"Centre"\nparams', '"Center"\nparams', 8, r"no detector 'Center'. Did you mean 'Centre'\?"),
        ('["tiny",', '["tyny",', 3, r"no dataset 'tyny'. Did you mean 'tiny'\?"),
        ("shift = 1,", "shfit = 1,", 9, r"Centre has no parameter 'shfit'. Did you mean 'shift'\?"),
        ("shift = 1,", 'shift = "1",', 9, r"`shift` of Centre must be float; got '1'"),
        ('how = "well"', "how = 3", 13, r"`how` of Misbehaving must be str; got 3"),
        ("seeds = [0, 1]", "sedes = [0, 1]", 4, r"unknown key `sedes` in the suite. Did you mean 'seeds'\?"),
        ("seeds = [0, 1]", "seeds = [0.5]", 4, r"`seeds` .* must be a list of integers >= 0; got \[0.5\]"),
        ("radii = [0.1, 1]", "radii = [-1]", 5, r"`radii` .* numbers >= 0"),
        ("row_cap = 10", "row_cap = 0", 15, r"`row_cap` of \[detectors\] must be an integer >= 1; got 0"),
        ("row_cap = 10", "row_kap = 10", 15, r"unknown key `row_kap` .* Did you mean 'row_cap'\?"),
        ('"unsupervised"', '"unsupervized"', 2, r"`protocol` .* must be one or a list of unsupervised"),
        ('parameter = "shift"', 'parameter = "shitf"', 21, r"no parameter 'shitf'"),
        ('name = "noise"', 'name = "nois"', 25, r"no attack 'nois'. Did you mean 'noise'\?"),
        ('detectors = ["Centre"]', 'detectors = ["Centr"]', 27, r"detectors of this suite; got 'Centr'"),
        ('normal_classes = ["setosa"]', 'normal_classes = ["rose"]', 3, r"must be setosa, .*; got 'rose'"),
        ("wall_seconds = 60", "wall_seconds = true", 31, r"`wall_seconds` .* must be a number > 0; got True"),
        ('"one-versus-rest"', '"one-class"', 3, r"'tiny-classes' has classes"),
        ('name = "small"', 'name = "../x"', 1, r"`name` of the suite must be lower-case"),
        ('name = "small"', 'name = "small', 1, r"not TOML"),
        ("values = [0, 1]", 'values = [0, "1"]', 21, r"`shift` of Centre must be float; got '1'"),
        ("[[attacks]]", "[[attack]]", 24, r"unknown key `attack` in the suite. Did you mean 'attacks'\?"),
        ("[0.1, 1]", '[0.1, 1]\nthreats = ["boht"]', 6, r"any of .*; got \['boht'\]. Did you mean 'both'\?"),
        ('"unsupervised"', '"Unsupervised"', 2, r"got 'Unsupervised'. Did you mean 'unsupervised'\?"),
        ('"Centre"\nparams = {shift = 1,', '"OCSDF"\nparams = {recipe = "papr",', 9,
         r"`recipe` of OCSDF must be one of 'auto', .*; got 'papr'. Did you mean 'paper'\?"),
        ('"Centre"\nparams = {shift = 1,', '"OCSDF"\nparams = {hidden = [64, "a"],', 9,
         r"`hidden` of OCSDF must be"),
        (
            '"Centre"\nparams = {shift = 1, noise = 0.5}', '"Rich"', 8,
            r"Rich needs the module 'no_such_module'; python -m pip install 'ocsdf-bench\[torch\]'",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_found_with_its_line_what_is_allowed_and_the_nearest_name(
    tmp_path, before, after, line, words
):
    assert before in GOOD
    problems = _problems(tmp_path, GOOD.replace(before, after, 1))
    found = [p for p in problems if re.search(words, p)]
    assert found, problems
    if line is not None:
        assert f"suite.toml:{line}:" in found[0]


def test_every_mistake_is_told_at_once(tmp_path):
    text = GOOD.replace('["tiny",', '["tyny",').replace('name = "noise"', 'name = "nois"')
    assert len(_problems(tmp_path, text)) >= 2


def test_a_missing_key_is_named(tmp_path):
    (problem,) = _problems(tmp_path, GOOD.replace('protocol = "unsupervised"\n', ""))
    assert "needs the key `protocol`" in problem


def test_a_run_listed_twice_is_refused(tmp_path):
    twice = GOOD + '\n[[detectors]]\nname = "Centre"\nparams = {shift = 1, noise = 0.5}\n'
    assert "lists one run twice" in _problems(tmp_path, twice)[0]


def test_an_absent_file_is_a_sentence(tmp_path):
    with pytest.raises(SuiteError, match="can not be read"):
        read_suite(tmp_path / "absent.toml")


def test_only_keeps_the_candidates_of_a_choice(tmp_path):
    suite = select(_read(tmp_path, GOOD), parse_only("detector=Centre-best-shift,dataset=tiny"))
    assert [(r.detector, r.params["shift"]) for r in suite.runs] == [("Centre", 0), ("Centre", 1)]
    assert [c.name for c in suite.choices] == ["Centre-best-shift"]


def test_only_with_an_unknown_field_is_refused():
    with pytest.raises(ValueError, match="FIELD among detector"):
        parse_only("detectors=Centre")
