"""The whole numbers into which something can be split evenly."""

from math import isqrt


def divisors(n: int) -> list[int]:
    """The divisors of n, smallest first, found with √n divisions.

    >>> divisors(12), divisors(9), divisors(1)
    ([1, 2, 3, 4, 6, 12], [1, 3, 9], [1])
    """
    small = [d for d in range(1, isqrt(n) + 1) if n % d == 0]
    return small + [n // d for d in reversed(small) if d * d < n]
