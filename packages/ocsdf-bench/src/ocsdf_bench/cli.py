"""The command line: one function a command, each a few calls of the Python API."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

app = typer.Typer(
    name="ocsdf-bench",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Measure anomaly detectors: clean, under attack, and with a proof.\n\n"
    "[bold]First steps[/]\n\n"
    "  ocsdf-bench list detectors            what there is\n\n"
    "  ocsdf-bench check benchmarks/quick.toml    is this suite right?\n\n"
    "  ocsdf-bench run benchmarks/quick.toml      run it; stop and go on as you like\n\n"
    "  ocsdf-bench report reports/quick           tables from what was run",
)

SuitePath = Annotated[Path, typer.Argument(help="Suite file, e.g. benchmarks/quick.toml.", metavar="SUITE")]
StorePath = Annotated[Path, typer.Argument(help="Directory that holds runs.jsonl.", metavar="DIR")]
DataDir = Annotated[
    Path | None,
    typer.Option("--data", envvar="OCSDF_DATA", help="Local mirror of the raw files, read only."),
]
Offline = Annotated[bool, typer.Option("--offline", help="Never download; what is absent is skipped.")]
Plugins = Annotated[
    list[Path] | None,
    typer.Option("--plugin", help="Python file that adds a detector, data set or attack; repeatable."),
]


@app.command("list")
def list_(
    kind: Annotated[
        str, typer.Argument(help="detectors, datasets, attacks, protocols or tables.")
    ] = "detectors",
    card: Annotated[
        str, typer.Option("--card", help="All that is known of one data set.", metavar="NAME")
    ] = "",
    data: DataDir = None,
    offline: Offline = False,
    plugin: Plugins = None,
) -> None:
    """Show what is registered, built in or by plug-in."""
    from rich.console import Console

    from ocsdf_bench.listing import KINDS, data_card, listing
    from ocsdf_bench.registry import UnknownNameError

    _load_plugins(plugin)
    if kind not in KINDS:
        _fail(f"`kind` of list must be one of {', '.join(KINDS)}; got {kind!r}.")
    if not card:
        return Console().print(listing(kind))
    if kind != "datasets":
        _fail(f"`--card` of list needs the kind datasets; got {kind!r}.")
    try:
        return Console().print(data_card(card, _source(data, offline)))
    except UnknownNameError as error:
        _fail(str(error))


@app.command()
def check(suite: SuitePath, plugin: Plugins = None) -> None:
    """Read a suite and name every mistake in it, with its line; nothing is run or downloaded."""
    checked = _read_suite(suite, plugin)
    typer.echo(f"{suite} is right: {checked.n_runs} runs on {len(checked.datasets())} data sets.")


@app.command()
def fetch(suite: SuitePath, data: DataDir = None, offline: Offline = False, plugin: Plugins = None) -> None:
    """Get and check the data of a suite, so that a run needs no network."""
    from ocsdf_bench.dataset import DATASETS, DataCorruptError, DataUnavailableError

    source, missing = _source(data, offline), 0
    for name in _read_suite(suite, plugin).datasets():
        try:
            loaded = DATASETS[name].load(source)
            typer.echo(f"{name}: {len(loaded.y)} rows, sha256 {loaded.checksum[:12]}")
        except (DataUnavailableError, DataCorruptError) as error:
            missing += 1
            typer.echo(f"{name}: {error}", err=True)
    raise typer.Exit(1 if missing else 0)


@app.command()
def run(
    suite: SuitePath,
    out: Annotated[
        Path | None, typer.Option("--out", help="Store; default reports/NAME, NAME as the suite says.")
    ] = None,
    data: DataDir = None,
    offline: Offline = False,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Runs at once; default one a core.")
    ] = None,
    only: Annotated[
        str, typer.Option("--only", help="A part of the suite: detector=HBOS,dataset=wine,seed=0.")
    ] = "",
    retry: Annotated[str, typer.Option("--retry", help="Run these again: failed,timeout,oom,skipped.")] = "",
    plugin: Plugins = None,
    dask: Annotated[
        str, typer.Option("--dask", help="Run on a cluster: tcp://HOST:PORT of a scheduler, or slurm.")
    ] = "",
    report: Annotated[bool, typer.Option(help="Write the leaderboards when done.")] = True,
) -> None:
    """Run a suite; what is in the store already is not run again.

    Stop it whenever you like (Ctrl-C, even kill -9): the same command goes on where it was. A run that
    fails, hangs, crashes or needs too much memory becomes a row with its reason, and the suite goes on.
    """
    import warnings

    from rich.console import Console

    from ocsdf_bench.cluster import ClusterError
    from ocsdf_bench.progress import SuiteProgress
    from ocsdf_bench.runner import run_suite
    from ocsdf_bench.store import STATUSES, StoreCorruptError, StoreError
    from ocsdf_bench.suite import parse_only, select

    warnings.showwarning = lambda message, *_: typer.echo(f"Warning: {message}", err=True)
    statuses = [s for s in retry.split(",") if s]
    if not set(statuses) <= set(STATUSES[1:]):
        _fail(f"`--retry` must be any of {','.join(STATUSES[1:])}; got {retry!r}.")
    try:
        chosen = select(_read_suite(suite, plugin), parse_only(only))
    except ValueError as error:
        _fail(str(error))
    if not chosen.n_runs:
        _fail(f"`--only` must leave at least one run of the suite; {only!r} leaves none.")
    directory = out or Path("reports") / chosen.name
    console = Console(stderr=True)
    try:
        with SuiteProgress(chosen.name, chosen.n_runs, console) as progress:
            summary = run_suite(
                chosen, directory, _source(data, offline), workers=workers, retry=statuses,
                plugins=plugin or (), dask=dask, on_run=progress,
            )  # fmt: skip
    except (StoreError, StoreCorruptError, ClusterError) as error:
        _fail(str(error))
    counts = ", ".join(f"{n} {status}" for status, n in sorted(summary.statuses.items())) or "none"
    typer.echo(f"{summary.skipped} runs were in the store; new: {counts}.")
    if summary.interrupted:
        typer.echo("Stopped. The same command goes on from here.")
        raise typer.Exit(130)
    if report:
        _report(directory)


@app.command()
def report(directory: StorePath) -> None:
    """Write the leaderboards (Markdown, LaTeX, HTML, CSV) of what was run."""
    _require_store(directory)
    _report(directory)


@app.command()
def new(
    kind: Annotated[str, typer.Argument(help="detector, dataset or attack.")],
    name: Annotated[str, typer.Argument(help="Its name in tables, e.g. MyDetector.")],
) -> None:
    """Write a working plug-in file to fill in."""
    from ocsdf_bench.scaffold import write_plugin

    try:
        path = write_plugin(kind, name, Path.cwd())
    except ValueError as error:
        _fail(str(error))
    typer.echo(f"{path.name} is written; `ocsdf-bench list {kind}s --plugin {path.name}` shows it.")


@app.command()
def verify(directory: StorePath) -> None:
    """Check the chain of rows and recompute every metric from the stored scores."""
    from ocsdf_bench.store import StoreCorruptError
    from ocsdf_bench.verify import verify as verify_store

    _require_store(directory)
    try:
        found = verify_store(directory)
    except StoreCorruptError as error:
        _fail(str(error))
    if found.problem:
        _fail(found.problem)
    typer.echo(
        f"{found.n_rows} rows form an unbroken chain with head {found.head[:16]}; metrics of "
        f"{found.n_recomputed} were recomputed, {found.n_without_scores} have no scores on this machine."
    )


@app.command()
def submit(
    folder: Annotated[
        Path, typer.Argument(help="Folder of a third party: runs.csv and scores/.", metavar="FOLDER")
    ],
    into: Annotated[Path, typer.Option("--into", help="Store that it joins.")],
    by: Annotated[str, typer.Option("--by", help="Who reports it; stands in every table.")],
    only_check: Annotated[bool, typer.Option("--check", help="Check it and write nothing.")] = False,
    data: DataDir = None,
    offline: Offline = False,
    plugin: Plugins = None,
) -> None:
    """Add a third party's results to a store: recomputed from their scores, marked as reported.

    None of their code runs and nothing is unpickled. Certified and attacked metrics are not taken: they do
    not follow from scores. For those send the detector, as a plug-in.
    """
    from ocsdf_bench.store import StoreCorruptError, StoreError
    from ocsdf_bench.submit import SubmissionError, read_submission
    from ocsdf_bench.submit import submit as submit_to

    _require_store(into)
    _load_plugins(plugin)
    try:
        found = (read_submission if only_check else submit_to)(folder, into, _source(data, offline), by=by)
    except (SubmissionError, StoreError, StoreCorruptError) as error:
        _fail(str(error))
    typer.echo(f"{len(found.runs)} runs {'can join' if only_check else 'joined'} {into}, reported by {by}.")
    if found.not_taken:
        typer.echo(f"Not taken, for they do not follow from scores: {', '.join(found.not_taken)}.")


@app.command()
def compare(
    base: Annotated[Path, typer.Argument(help="Store to compare with.", metavar="BASE")],
    new: Annotated[Path, typer.Argument(help="Store to judge.", metavar="NEW")],
    margin: Annotated[
        float, typer.Option(min=0, help="Loss of a detector's mean that is still equal; 0.01 is one point.")
    ] = 0.01,
    set_margin: Annotated[
        float, typer.Option(min=0, help="Loss on one set that is a regression whatever the mean.")
    ] = 0.05,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the comparison as JSON.")] = None,
    summary_file: Annotated[
        Path | None, typer.Option("--summary", help="Write the summary, for a pull request.")
    ] = None,
) -> None:
    """Judge a store against another: exit code 1 on a regression, 2 where they cannot be compared."""
    import json

    from ocsdf_bench.compare import compare as compare_stores
    from ocsdf_bench.compare import to_markdown
    from ocsdf_bench.store import StoreCorruptError, read_runs

    _require_store(base)
    _require_store(new)
    try:
        found = compare_stores(read_runs(base), read_runs(new), margin=margin, set_margin=set_margin)
    except StoreCorruptError as error:
        _fail(str(error))
    summary = to_markdown(found)
    typer.echo(summary)
    if json_file is not None:
        json_file.write_text(json.dumps(found.to_json(), indent=2) + "\n", encoding="utf-8")
    if summary_file is not None:
        summary_file.write_text(summary, encoding="utf-8")
    raise typer.Exit(found.exit_code)


@app.command()
def site(
    directories: Annotated[list[Path], typer.Argument(help="Stores to show.", metavar="DIR...")],
    out: Annotated[Path, typer.Option("--out", help="Where the pages go.")] = Path("site"),
) -> None:
    """Build a static site of stores: sortable, self-contained, a page per data set and detector."""
    from ocsdf_bench.site import build_site

    for directory in directories:
        _require_store(directory)
    pages = build_site(directories, out)
    typer.echo(f"{len(pages)} pages; start at {os.path.relpath(pages[0])}")


adbench = typer.Typer(no_args_is_help=True, help="ADBench's own result files, written and read.")
app.add_typer(adbench, name="adbench")


@adbench.command("export")
def adbench_export(
    directory: StorePath,
    out: Annotated[Path, typer.Option("--out", help="Folder of the files.")] = Path("adbench-results"),
) -> None:
    """Write a store as ADBench writes its results: AUCROC_*.csv, AUCPR_*.csv, Time(fit)_*.csv and so on."""
    from ocsdf_bench.adbench import write_results
    from ocsdf_bench.store import StoreCorruptError, read_runs

    _require_store(directory)
    try:
        paths = write_results(read_runs(directory), out)
    except StoreCorruptError as error:
        _fail(str(error))
    for path in paths:
        typer.echo(os.path.relpath(path))


@adbench.command("import")
def adbench_import(
    folder: Annotated[Path, typer.Argument(help="Folder with AUCROC_*.csv and its kin.", metavar="FOLDER")],
    into: Annotated[Path, typer.Option("--into", help="Store whose leaderboard shows them.")],
    source: Annotated[str, typer.Option("--source", help="Who published them, e.g. 'ADBench, 2022'.")],
    protocol: Annotated[str, typer.Option(help="Protocol they were made under.")] = "adbench",
) -> None:
    """Show ADBench's own results beside a store's, as columns marked published and never ranked."""
    from ocsdf_bench.adbench import import_results
    from ocsdf_bench.published import read_published, write_published

    _require_store(into)
    path = into / "published.csv"
    try:
        found = import_results(folder, source, protocol)
        others = [figure for figure in read_published(path) if figure.source != source]
    except ValueError as error:
        _fail(str(error))
    write_published(path, [*others, *found.figures])
    typer.echo(
        f"{len(found.figures)} figures are in {os.path.relpath(path)}; `ocsdf-bench report` shows them."
    )
    if found.unknown:
        typer.echo(f"Left out, no classical set of ADBench: {', '.join(found.unknown)}.")
    if found.n_labelled:
        typer.echo(f"Left out, fitted with labelled anomalies: {found.n_labelled} cells.")


def main() -> None:
    """Entry point of ``ocsdf-bench``."""
    app()


def _read_suite(path: Path, plugins: list[Path] | None) -> Any:
    from ocsdf_bench.suite_file import SuiteError, read_suite

    _load_plugins(plugins)
    try:
        return read_suite(path)
    except SuiteError as error:
        for problem in error.problems:
            typer.echo(problem, err=True)
        raise typer.Exit(2) from error


@app.command()
def synthesise(
    dataset: Annotated[str, typer.Argument(help="A data set of images, e.g. mnist.")],
    out: Annotated[Path, typer.Option(help="Folder of the report.")],
    data: DataDir = None,
    offline: Offline = False,
) -> None:
    """Draw images that the image recipe makes of noise, a row per class, on the level of training images."""
    from ocsdf_bench.dataset import DATASETS, DataCorruptError, DataUnavailableError
    from ocsdf_bench.registry import UnknownNameError
    from ocsdf_bench.synthesis import run_synthesis

    try:
        if DATASETS[dataset].kind != "image":
            _fail(f"`dataset` of synthesise must be a set of images; got {dataset!r}.")
        typer.echo(run_synthesis(dataset, out, _source(data, offline)))
    except (UnknownNameError, DataUnavailableError, DataCorruptError) as error:
        _fail(str(error))


@app.command()
def toy2d(
    suite: Annotated[Path, typer.Argument(help="Study file, e.g. benchmarks/toy2d.toml.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the report; default reports/toy2d.")] = None,
) -> None:
    """Draw the pictures in the plane: level sets, certified radii, how near f - m is to a signed distance."""
    from ocsdf_bench.toy2d import run_toy2d
    from ocsdf_bench.toy2d.measure import read_suite

    try:
        plan = read_suite(suite)
    except ValueError as error:
        _fail(str(error))
    run_toy2d(plan, out or Path("reports/toy2d"))


@app.command()
def shapes(
    suite: Annotated[Path, typer.Argument(help="Study file, e.g. benchmarks/shapes.toml.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the report; default reports/shapes.")] = None,
    data: DataDir = None,
    offline: Offline = False,
) -> None:
    """Turn points on surfaces into signed distances and meshes, beside other reconstructions."""
    from ocsdf_bench.shapes import run_shapes
    from ocsdf_bench.shapes.suite import read_suite

    try:
        plan = read_suite(suite)
    except ValueError as error:
        _fail(str(error))
    run_shapes(plan, out or Path("reports/shapes"), _source(data, offline))


def _load_plugins(plugins: list[Path] | None) -> None:
    from ocsdf_bench.plugin import PluginError, load_plugins

    try:
        load_plugins(plugins or ())
    except PluginError as error:
        _fail(str(error))


def _source(data: Path | None, offline: bool) -> Any:
    from ocsdf_bench.source import MirrorOrDownload

    if data is not None and not data.is_dir():
        _fail(f"`--data` must be a directory; got '{data}'.")
    return MirrorOrDownload(data_dir=data.resolve() if data else None, offline=offline)


def _require_store(directory: Path) -> None:
    if not (directory / "runs.jsonl").is_file():
        _fail(f"`DIR` must hold runs.jsonl, which `ocsdf-bench run` writes; got '{directory}'.")


def _report(directory: Path) -> None:
    from ocsdf_bench.table import write_report

    written = write_report(directory)
    typer.echo(written.ranking_text)
    for path in written.paths:
        typer.echo(os.path.relpath(path))


def _fail(sentence: str) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(2)
