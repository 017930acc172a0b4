# SPDX-License-Identifier: Apache-2.0
"""Just enough of the curve of Ed25519 to find its points of small order; RFC 8032, section 5.1."""

PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, PRIME) % PRIME
_ROOT = pow(2, (PRIME - 1) // 4, PRIME)
_SIGN = 1 << 255

Point = tuple[int, int]


def _add(one: Point, other: Point) -> Point:
    (x1, y1), (x2, y2) = one, other
    product = _D * x1 * x2 * y1 * y2
    x3 = (x1 * y2 + x2 * y1) * pow(1 + product, -1, PRIME)
    y3 = (y1 * y2 + x1 * x2) * pow(1 - product, -1, PRIME)
    return x3 % PRIME, y3 % PRIME


def _times(count: int, point: Point) -> Point:
    total = (0, 1)
    while count:
        if count & 1:
            total = _add(total, point)
        point = _add(point, point)
        count >>= 1
    return total


def point_at(y: int) -> Point | None:
    """One of the two points of a y coordinate, or None where the curve has none."""
    square = (y * y - 1) * pow(_D * y * y + 1, -1, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if (x * x - square) % PRIME:
        x = x * _ROOT % PRIME
    return None if (x * x - square) % PRIME else (x, y)


def small_order_points() -> set[Point]:
    """The eight points whose order divides eight."""
    for y in range(2, 100):
        point = point_at(y)
        if point is not None:
            found = {_times(count, _times(ORDER, point)) for count in range(8)}
            if len(found) == 8:
                return found
    raise AssertionError("no generator of the small subgroup below 100")


def encodings(y: int) -> list[bytes]:
    """Every encoding in 32 bytes of a y coordinate, canonical or not, with either sign."""
    values = [value for value in (y, y + PRIME) if value < _SIGN]
    return [(value | sign).to_bytes(32, "little") for value in values for sign in (0, _SIGN)]
