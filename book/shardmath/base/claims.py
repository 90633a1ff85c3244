"""The claims of a chapter, each checked by conditions that can fail.

A claim that holds prints one line. A claim that fails is printed as such but raises no
error, so a reader who changes a chip or a batch size can still run the chapter to its
end. The tests compare the printed lines with the stored ones and thus find unintended
changes.
"""

from .units import short_repr

HOLDS, FAILS = "✓", "✗"  # how the line of a claim begins


def holds(claim: str, *conditions: object) -> None:
    """Print `claim` and whether all `conditions` are true.

    Args:
        claim: what the conditions check, in words, on one line.
        conditions: at least one True or False; NumPy and JAX scalars are accepted too.

    Raises:
        ValueError: the claim is empty or has several lines, there is no condition, or a
            condition is neither True nor False, such as a list.

    >>> holds("half of 24 tokens are 12", 24 / 2 == 12)
    ✓ half of 24 tokens are 12
    >>> holds("a batch of 2048 waits for memory", 2048 > 0, 2048 < 241)
    ✗ a batch of 2048 waits for memory: not with these numbers (condition 2 of 2).
      It is claimed for the book's own; if you changed one of them, read on.
    """
    if not isinstance(claim, str) or not claim.strip() or len(claim.splitlines()) > 1:
        raise ValueError(f"claim = {short_repr(claim)}: must be words, on one line")
    if not conditions:
        raise ValueError(
            f"{short_repr(claim)}: must have at least one condition, holds(claim, …)"
        )
    found = [_truth(n, value) for n, value in enumerate(conditions, 1)]
    if all(found):
        print(HOLDS, claim)
        return
    failed = ", ".join(str(n) for n, true in enumerate(found, 1) if not true)
    which = f" (condition {failed} of {len(found)})" if len(found) > 1 else ""
    print(f"{FAILS} {claim}: not with these numbers{which}.")
    print("  It is claimed for the book's own; if you changed one of them, read on.")


def _truth(place: int, value: object) -> bool:
    """The `place`-th condition as Python's own True or False."""
    size = getattr(value, "size", None)  # numpy's and JAX's values have one
    if isinstance(size, int) and size != 1:
        raise ValueError(
            f"condition {place} has {size} values: must be one; call .all() or .any()"
        )
    single = value.item() if size == 1 else value
    if not isinstance(single, bool):
        raise ValueError(
            f"condition {place} = {short_repr(value)}: must be True or False, such as "
            "the result of a comparison"
        )
    return single
