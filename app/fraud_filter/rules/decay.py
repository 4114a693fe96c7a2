"""What decay is: how much less an older payment counts. Filter and audit both take it from here, to the last bit.

A payment's weight doubles in each half-life from the beginning of its period of the state on, in steps. So a sum of
weights is one number to which each payment adds its own; divided by the weight of now it is the decayed sum. Powers of
two are exact, and what lies between them is this table: Java and Python multiply, add and divide by one standard.
"""

from __future__ import annotations

from decimal import Decimal

#: Steps of a half-life.
STEPS = 64
#: The weights of the steps, rounded once: not every machine's power function rounds alike.
BETWEEN = tuple(float(Decimal(2) ** (Decimal(step) / STEPS)) for step in range(STEPS))
#: A payment that is older by so many half-lives counts less than a thousandth, and may be forgotten.
HALVINGS = 10
#: A period's first weight is two to the power of minus this.
OFFSET = 750
#: Half-lives of a period: its last weight is not much more than two to the power of `OFFSET`.
MOST_HALVINGS = 2 * OFFSET
#: A period of the state begins every so many windows, and is one window longer.
STRIDE = 4


def weight(age_ms: int, half_ms: int) -> float:
    """The weight of a payment `age_ms` after the beginning of its period."""
    halvings, step = divmod(age_ms * STEPS // half_ms, STEPS)
    return float(2.0 ** (halvings - OFFSET)) * BETWEEN[step]


def least_half_ms(longest_ms: int) -> float:
    """The shortest half-life beside a window of that length, which makes the periods."""
    return (STRIDE + 1) * longest_ms / MOST_HALVINGS
