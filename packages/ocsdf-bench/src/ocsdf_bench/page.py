"""Pages from the templates: escaped by default, with style and script inside, so that nothing is fetched."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ocsdf_bench.figure import to_svg

if TYPE_CHECKING:
    from jinja2 import Environment

    from ocsdf_bench.leaderboard import Leaderboard
    from ocsdf_bench.plot import Picture


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("ocsdf_bench"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals.update(asset=_asset, svg=_svg)
    return found


def render_page(template: str, **values: Any) -> str:
    """A template of the package with ``values``; every value is escaped."""
    return _environment().get_template(template).render(**{"home": "", **values})


def render_leaderboard(leaderboard: Leaderboard, *, home: str = "") -> str:
    """The page of a whole leaderboard; ``home`` is the page it belongs to, if any."""
    from ocsdf_bench.plot import pictures

    drawn = [pictures(section.results) for section in leaderboard.sections]
    sections = list(zip(leaderboard.sections, drawn, strict=True))
    return render_page("leaderboard.html.j2", title=leaderboard.title, sections=sections, home=home)


def _asset(name: str) -> Any:
    """Style or script of the package, as it stands: it is ours and holds no value."""
    from markupsafe import Markup

    return Markup(files("ocsdf_bench").joinpath("templates", name).read_text(encoding="utf-8"))


def _svg(picture: Picture, name: str) -> Any:
    """A picture as an ``<svg>`` element; matplotlib draws text as outlines and escapes what it writes."""
    from markupsafe import Markup

    return Markup(to_svg(picture.draw(), name))
