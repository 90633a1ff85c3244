"""The planner: the best meshes for a model on a machine, and why not others.

>>> found = plan("llama 3 70b", "v5p:16x16x16", "4M")
>>> print(found.best.axes)
{'zero': 512, 'tensor': 8}
>>> print(found.why_not(tensor=128))
tensor 128 does not divide 64 query heads
"""

from .patterns import ORDER
from .plan import Plan, Trial, nearest, plan

__all__ = ["ORDER", "Plan", "Trial", "nearest", "plan"]
