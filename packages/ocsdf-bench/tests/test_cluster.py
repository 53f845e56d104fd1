import os
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ocsdf_bench.cluster import ClusterError
from ocsdf_bench.plugin import load_plugins
from ocsdf_bench.runner import run_suite
from ocsdf_bench.source import MirrorOrDownload
from ocsdf_bench.store import read_runs
from ocsdf_bench.suite_file import read_suite

distributed = pytest.importorskip("distributed", reason="needs the extra `dask`")

PLUGIN = Path(__file__).with_name("misbehaving.py")
load_plugins([PLUGIN])
SUITE = """\
name = "small"
protocol = "one-class"
datasets = ["tiny"]
radii = [0.1]
[[detectors]]
name = "Centre"
params = {noise = 0.5, sleep = 0.3}
seeds = [0, 1, 2, 3, 4, 5]
[[detectors]]
name = "Misbehaving"
params = {how = "segfault"}
resources = {GPU = 1}
"""


def _run(tmp_path, name, text=SUITE, **options):
    (tmp_path / "suite.toml").write_text(text)
    suite = read_suite(tmp_path / "suite.toml")
    source = MirrorOrDownload(offline=True)
    run_suite(suite, tmp_path / name, source, workers=2, plugins=[PLUGIN], **options)
    changing = {"previous": "", "fit_seconds": None, "score_seconds": None, "peak_mb": None, "commit": ""}
    return [replace(run, **changing, dirty=None, hardware={}) for run in read_runs(tmp_path / name)]


def test_a_cluster_that_loses_a_worker_gives_what_one_machine_gives(tmp_path):
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, resources={"GPU": 1}
    ) as cluster:
        with distributed.Client(cluster) as client:
            victim = next(iter(client.run(os.getpid).values()))
        lost = []

        def lose_a_worker(run):
            if not lost:
                lost.append(run)
                os.kill(victim, signal.SIGKILL)

        found = _run(tmp_path, "far", dask=cluster.scheduler_address, on_run=lose_a_worker)
    assert lost
    assert [run.status for run in found] == ["ok"] * 6 + ["failed"]
    assert "SIGSEGV" in found[-1].reason
    assert found == _run(tmp_path, "near")


def test_an_address_where_nobody_listens_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("ocsdf_bench.cluster.CONNECT_SECONDS", 1)
    with pytest.raises(ClusterError, match="must be slurm or the address of a running scheduler"):
        _run(tmp_path, "nowhere", dask="tcp://127.0.0.1:9")


def test_a_scheduler_without_workers_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("ocsdf_bench.cluster.WORKER_SECONDS", 1)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster,
        pytest.raises(ClusterError, match="must have a worker within 1 s; got none"),
    ):
        _run(tmp_path, "idle", dask=cluster.scheduler_address)


def test_slurm_without_its_program_or_its_settings_is_a_sentence(tmp_path, monkeypatch):
    pytest.importorskip("dask_jobqueue", reason="needs the extra `slurm`")
    import dask

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="this machine has no `sbatch`"):
        _run(tmp_path, "elsewhere", dask="slurm")
    (tmp_path / "sbatch").touch(mode=0o755)
    with (
        dask.config.set({"jobqueue.slurm.cores": None}),
        pytest.raises(ClusterError, match="needs `cores` and `memory` of a job under `jobqueue: slurm:`"),
    ):
        _run(tmp_path, "unset", dask="slurm")


@pytest.mark.skipif(shutil.which("sbatch") is None, reason="needs a Slurm cluster: no `sbatch` here")
def test_slurm_jobs_give_what_one_machine_gives(tmp_path):
    pytest.importorskip("dask_jobqueue", reason="needs the extra `slurm`")
    asked = subprocess.run(["sinfo", "--noheader"], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        pytest.skip(f"needs a Slurm cluster: {asked.stderr.strip()}")
    import dask

    text = SUITE.replace("resources = {GPU = 1}\n", "")  # a job has none
    job = {"cores": 1, "processes": 1, "memory": "2GB", "log-directory": str(tmp_path)}
    with dask.config.set({"jobqueue.slurm": {**dask.config.get("jobqueue.slurm"), **job}}):
        found = _run(tmp_path, "far", text, dask="slurm")
    assert [run.status for run in found] == ["ok"] * 6 + ["failed"]
    assert found == _run(tmp_path, "near", text)
