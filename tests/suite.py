"""How the suite is shared out among workers, and what each chapter costs it.

Cells of a notebook run in order in one kernel, and module fixtures are dear: a file
stays on one worker. Only the pages of the site are dealt out one by one.
"""

import gc
import os
import re
from collections import Counter

import pytest

BUDGET = 12  # worker-seconds that a chapter should take; most of them take more
PAGES = "tests/site/test_pages.py"  # its tests of one page stay together

# Roughly, seconds of a test where it takes longer than others. What is dealt out last
# leaves the other workers idle, so it should be short.
SECONDS = {
    "tests/test_make.py": 10,
    "tests/test_tools.py": 1.5,
    "tests/site/": 1.5,
    "tests/grading/": 1,
    "tests/planner/": 1,
    "tests/referee/test_strategies_compiled.py": 1,
    "chapters/": 0.2,
}
OTHERS = 0.1

_CHAPTER = re.compile(r"(?:^|[/\[-])(0[1-9]|[1-9]\d)_[a-z]\w*(?=[.\]-])")
_SECONDS = pytest.StashKey[Counter]()


def share(nodeid: str) -> str:
    """What of the suite must run on one worker, in order.

    >>> share("chapters/01_rooflines.ipynb::Cell 3")
    'chapters/01_rooflines.ipynb'
    >>> share("tests/site/test_pages.py::test_fits[chapters/01_rooflines.html]")
    'tests/site/test_pages.py[chapters/01_rooflines.html]'
    """
    file, _, test = nodeid.partition("::")
    return file + test[test.find("[") :] if file == PAGES and "[" in test else file


def chapter(nodeid: str) -> str:
    """The number of the chapter that a test belongs to; "" where it serves all.

    >>> chapter("exercises/04_networks.ipynb::Cell 0")
    '04'
    >>> chapter("tests/notebooks/test_stored.py::test_prose[04_networks]")
    '04'
    >>> chapter("tests/base/test_units.py::test_show[10_000]")
    ''
    """
    found = _CHAPTER.search(nodeid)
    return found[1] if found else ""


def expected_seconds(scope: str, tests: int) -> float:
    """How long so many tests of a share are likely to take.

    >>> expected_seconds("tests/site/test_prompt.py", 20)
    30.0
    >>> expected_seconds("tests/base/test_units.py", 100)
    10.0
    """
    found = (cost for start, cost in SECONDS.items() if scope.startswith(start))
    return float(tests * next(found, OTHERS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One more than there are cores: a worker often waits for a browser or a kernel."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Shares as `share` cuts them, those that take longest first."""
    from xdist.scheduler import LoadScopeScheduling

    class Shares(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return share(nodeid)

        def _assign_work_unit(self, node):
            longest = max(
                self.workqueue,
                key=lambda scope: expected_seconds(scope, len(self.workqueue[scope])),
            )
            self.workqueue.move_to_end(longest, last=False)
            super()._assign_work_unit(node)

    return Shares(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage while tests are found, and never among what was found.

    It is a million objects, and all of them stay to the end. Then we look rarely, since
    what JAX traces is many objects and little garbage; kernels do so too.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(100_000, 50, 50)


def pytest_configure(config):
    config.stash[_SECONDS] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_report_teststatus(report, config):
    """Add the seconds of a report, which workers send as they come."""
    config.stash[_SECONDS][chapter(report.nodeid)] += getattr(report, "duration", 0.0)
    return (yield)


def pytest_terminal_summary(terminalreporter, config):
    """Worker-seconds by chapter, those over the budget marked."""
    seconds = config.stash[_SECONDS]
    rest = seconds.pop("", 0.0)
    if len(seconds) > 1:
        told = [
            f"{number} {spent:.0f}" + " (!)" * (spent > BUDGET)
            for number, spent in sorted(seconds.items())
        ]
        terminalreporter.write_line(
            f"worker-seconds by chapter, {BUDGET} wanted: {' · '.join(told)}; "
            f"all else {rest:.0f}"
        )
