"""The page that zooms into one training step, from seconds to microseconds.

``{zoom} hop`` inserts a picture of the step, and ``{zoomed}`hop` `` a number. Both are
computed when the page is written. A script keeps the current section's picture in view.
Without it, each section shows its picture.
"""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

from shardmath.base.units import show
from shardmath.draw.objects.zoomed_step import AXES, MEASURED, ZoomedStep, zoomed_step
from shardmath.draw.picture import in_page
from shardmath.draw.pictures.zooms import ZOOMS, zoom

PICTURE = "sm-zoom"


def numbers(one: ZoomedStep) -> dict[str, str]:
    """Name → a number of the step, as it is printed on the page.

    Args:
        one: the step.
    """
    likely, job = one.prediction, one.step.job
    forward, backward = one.passes
    amount, bound, product = one.product("gate")
    nbytes, send = one.send
    seconds = {
        "predicted": likely.seconds,
        "low": likely.low,
        "high": likely.high,
        "bound": likely.bound,
        "bubble": likely.parts["bubble"],
        "waits for exchanges": likely.parts["tensor"],
        "exposed once": likely.parts["update"],
        "played": one.played.seconds,
        "forward": forward,
        "backward": backward,
        "microbatch": forward + backward,
        "chunk": forward / one.played.chunks,
        "layer": sum(one.layer),
        "layer waits": one.layer.tensor,
        "matmul": product,
        "matmul bound": bound,
        "gather": one.gather_seconds,
        "gather bound": one.gather_bound,
        "hop": one.hop,
        "latency": one.latency,
        "send": send,
        "reduced": one.update[0],
        "measured, causal": one.measured[0],
        "measured, full": one.measured[1],
    }
    counts = {
        "chips": one.step.chips,
        "tokens": job.tokens,
        "sequences": job.seqs,
        "length": job.seq,
        "stages": one.played.stages,
        "microbatches": one.played.microbatches,
        "chunks": one.played.chunks,
        "layers": one.layers,
        "exchanges": one.exchanges,
        "group": one.group,
        "hops": one.hops,
        **AXES,
    }
    return {
        **{name: show(value, "s") for name, value in seconds.items()},
        **{name: f"{value:,}" for name, value in counts.items()},
        "matmul FLOPs": show(amount, "FLOPs"),
        "block": show(one.hop_bytes, "bytes"),
        "gathered": show(one.gather.collective.nbytes, "bytes"),
        "sent": show(nbytes, "bytes"),
        "hops in a step": f"{likely.seconds / one.hop:,.0f}",
        "card slower": f"{one.hop_bytes / one.hop / (nbytes / send):.0f}",
        "published": show(MEASURED, "FLOPs/s"),
        "waiting share": f"{one.layer.tensor / sum(one.layer):.0%}",
    }


class Zoom(SphinxDirective):
    """``{zoom} hop`` inserts the picture "hop"."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in ZOOMS:
            raise self.error(f"zoom {name!r}: must be one of {', '.join(ZOOMS)}")
        html = in_page(zoom(name, _step(self.env)).panels)
        return [nodes.raw("", html, format="html", classes=[PICTURE])]


class Zoomed(SphinxRole):
    """``{zoomed}`hop` `` inserts the number "hop"."""

    def run(self):
        known = numbers(_step(self.env))
        if self.text in known:
            return [nodes.Text(known[self.text])], []
        said = f"{self.text!r} is not a number of the step: must be one of "
        error = self.inliner.reporter.error(said + ", ".join(known), line=self.lineno)
        return [], [error]


def _step(env) -> ZoomedStep:
    """The step, derived once per page."""
    if "zoomed_step" not in env.temp_data:
        env.temp_data["zoomed_step"] = zoomed_step()
    return env.temp_data["zoomed_step"]


def zooms(doctree: nodes.document) -> bool:
    """Whether a page has pictures from ``{zoom}``."""
    return any(PICTURE in node["classes"] for node in doctree.findall(nodes.raw))


def _add_files(app, pagename, templatename, context, doctree) -> None:
    if doctree is not None and zooms(doctree):
        app.add_css_file("zoom.css")
        app.add_js_file("zoom.js", loading_method="defer")


def _look(app, env, added, changed, removed) -> list[str]:
    """Rebuild the page if the package has changed, like the front page."""
    known = getattr(env, "shardmath_zoomed", {})
    digest = env.shardmath_front["package"]
    env.shardmath_zoomed = dict.fromkeys(known, digest)
    return [name for name, made in known.items() if made != digest]


def _note(app, doctree) -> None:
    kept = app.env.__dict__.setdefault("shardmath_zoomed", {})
    if zooms(doctree):
        kept[app.env.docname] = app.env.shardmath_front["package"]


def setup(app) -> None:
    """Add the directive and the role, and rebuild the page when the package changes."""
    app.add_directive("zoom", Zoom)
    app.add_role("zoomed", Zoomed())
    app.connect("env-get-outdated", _look)
    app.connect("doctree-read", _note)
    app.connect("html-page-context", _add_files)
