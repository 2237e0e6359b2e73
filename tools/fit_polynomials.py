#!/usr/bin/env python3
"""Fits the polynomials of the CPU prelude's vector math and prints their C++ table.

Needs mpmath (`pip install mpmath`). Usage: tools/fit_polynomials.py | clang-format > codegen/llvm/prelude_coefficients.hpp

Each fit minimises the largest weighted error by the Remez exchange on a dense grid; then the coefficients are rounded to
the precision of the arithmetic that uses them, and the error printed is that of the rounded ones.
"""
import struct
from mpmath import mp, mpf, cos, pi, exp, expm1, log, log1p, sqrt, tanh, erf, erfc, sin, lu_solve, matrix

mp.dps = 60


def to_f32(value):
    return mpf(struct.unpack("f", struct.pack("f", float(value)))[0])


def to_f64(value):
    return mpf(float(value))


def remez(values, weights, points, degree):
    """The polynomial of this degree that minimises max |weight * (value - polynomial)| on the grid."""
    count = degree + 2
    last = len(points) - 1
    reference = [round(last * (1 - float(cos(pi * i / (count - 1)))) / 2) for i in range(count)]
    coefficients, previous = None, None
    for _ in range(60):
        system = matrix(count, count)
        right = matrix(count, 1)
        for row, index in enumerate(reference):
            for power in range(degree + 1):
                system[row, power] = points[index] ** power
            system[row, count - 1] = (-1) ** row / weights[index]
            right[row] = values[index]
        solution = lu_solve(system, right)
        coefficients = [solution[i] for i in range(count - 1)]
        errors = [w * (v - evaluate(coefficients, x)) for w, v, x in zip(weights, values, points)]
        extremes = []  # the largest error of each run of one sign
        for index, error in enumerate(errors):
            if extremes and (errors[extremes[-1]] > 0) == (error > 0):
                if abs(error) > abs(errors[extremes[-1]]):
                    extremes[-1] = index
            else:
                extremes.append(index)
        while len(extremes) > count:  # drop the weaker end
            extremes.pop(0 if abs(errors[extremes[0]]) < abs(errors[extremes[-1]]) else -1)
        if len(extremes) < count or extremes == previous:
            break
        previous = reference = extremes
    return coefficients


def evaluate(coefficients, x):
    total = mpf(0)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def fit(name, comment, function, weight, low, high, degree, rounding, digits):
    count = 60 * (degree + 2)
    low, high = mpf(low), mpf(high)
    points = [(low + high) / 2 - (high - low) / 2 * cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    values = [function(x) for x in points]
    weights = [abs(weight(x)) for x in points]
    fixed = [rounding(c) for c in remez(values, weights, points, degree)]
    worst = max(abs(w * (v - evaluate(fixed, x))) for v, w, x in zip(values, weights, points))
    print(f"// {comment}: error 2^{float(log(worst, 2)):.1f}.")
    print(f"inline constexpr double {name}[] = {{")
    for coefficient in fixed:
        print(f"    {float(coefficient):.{digits}g},")
    print("};\n", flush=True)


def f32(name, comment, function, weight, low, high, degree):
    fit(name, comment, function, weight, low, high, degree, to_f32, 9)


def f64(name, comment, function, weight, low, high, degree):
    fit(name, comment, function, weight, low, high, degree, to_f64, 17)


half_ln2 = log(2) / 2 * mpf("1.01")  # rounding to the nearest multiple may step a little over the half
exp_rest = lambda r: (exp(r) - 1 - r) / r**2
exp_weight = lambda r: r**2 / exp(r)
exp2_rest = lambda r: (mpf(2) ** r - 1) / r
exp2_weight = lambda r: r / mpf(2) ** r
log_rest = lambda f: (log1p(f) - f) / f**2
log_weight = lambda f: f**2 / log1p(f)
log2_rest = lambda f: log_rest(f) / log(2)
log_low, log_high = sqrt(mpf("0.5")) - 1, sqrt(mpf(2)) - 1
atanh_log = lambda z: log((1 + sqrt(z)) / (1 - sqrt(z))) / sqrt(z)  # 2 + 2/3 z + 2/5 z^2 ..., z = s^2
atanh_high = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2
quarter = pi / 4 * mpf("1.01")
tiny = mpf(10) ** -12  # keeps the quotients below clear of 0 / 0

print("// Coefficients of the CPU prelude's polynomials, lowest power first. Printed by tools/fit_polynomials.py; each comment")
print("// gives the approximated form, its range and the largest weighted error found by the fit.")
print("#pragma once\n\nnamespace tigon::llvm::coefficients {\n")

f32("exp_f32", "exp(r) = 1 + r + r^2 q(r), |r| <= ln2 / 2, relative to exp(r)", exp_rest, exp_weight, -half_ln2, half_ln2, 4)
f64("exp_f64", "the same for f64", exp_rest, exp_weight, -half_ln2, half_ln2, 9)
f32("exp2_f32", "2^r = 1 + r q(r), |r| <= 1/2, relative to 2^r", exp2_rest, exp2_weight, -0.5, 0.5, 5)
f64("exp2_f64", "the same for f64", exp2_rest, exp2_weight, -0.5, 0.5, 10)
f64("exp2_pow_f32", "the same for pow of f32, in f64 arithmetic", exp2_rest, exp2_weight, -0.5, 0.5, 6)
f32("log_f32", "log(1 + f) = f + f^2 q(f), sqrt(1/2) - 1 <= f <= sqrt(2) - 1, relative to log(1 + f)", log_rest, log_weight,
    log_low, log_high, 8)
f64("log2_pow_f32", "log2(1 + f) = f log2(e) + f^2 q(f) for pow of f32, in f64 arithmetic, relative", log2_rest,
    lambda f: log_weight(f) * log(2),
    log_low, log_high, 11)
f64("log_f64", "log((1 + s) / (1 - s)) = 2 s + s z q(z), z = s^2 <= 0.0295, relative to 2 s",
    lambda z: (atanh_log(z) - 2) / z, lambda z: z / 2, tiny, atanh_high, 6)
f64("log_pow_f64", "log((1 + s) / (1 - s)) = 2 s + s z (2/3 + z q(z)) for pow of f64, relative to 2 s",
    lambda z: ((atanh_log(z) - 2) / z - mpf(2) / 3) / z, lambda z: z**2 / 2, tiny, atanh_high, 7)
f32("tanh_f32", "tanh(a) = a + a^3 q(a^2), a <= 0.6, as function of a^2, relative to tanh(a)",
    lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z, lambda z: z * sqrt(z) / tanh(sqrt(z)), tiny, 0.36, 4)
f32("erf_small_f32", "erf(a) = a + a q(a^2), a <= 0.95, as function of a^2, relative to erf(a)",
    lambda z: erf(sqrt(z)) / sqrt(z) - 1, lambda z: sqrt(z) / erf(sqrt(z)), tiny, 0.9025, 6)
f32("erf_large_f32", "log(1 - erf(a)) = q(a), 0.9 <= a <= 4, absolute error of erf(a)",
    lambda x: log(erfc(x)), lambda x: erfc(x), 0.9, 4, 7)
f64("erf_small_f64", "erf(a) = a + a q(a^2), a <= 1, as function of a^2, relative to erf(a)",
    lambda z: erf(sqrt(z)) / sqrt(z) - 1, lambda z: sqrt(z) / erf(sqrt(z)), tiny, 1, 13)
f64("erf_large_f64", "log(1 - erf(a)) = q(a), 1 <= a <= 6, absolute error of erf(a)",
    lambda x: log(erfc(x)), lambda x: erfc(x), 1, 6, 18)
f32("sin_f32", "sin(r) = r + r^3 q(r^2), |r| <= pi/4, as function of r^2, relative to sin(r)",
    lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z, lambda z: z * sqrt(z) / sin(sqrt(z)), tiny, quarter**2, 3)
f32("cos_f32", "cos(r) = 1 - r^2/2 + r^4 q(r^2), |r| <= pi/4, as function of r^2, relative to cos(r)",
    lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / cos(sqrt(z)), tiny, quarter**2, 2)
f64("sin_f64", "the sine's for f64",
    lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z, lambda z: z * sqrt(z) / sin(sqrt(z)), tiny, quarter**2, 5)
f64("cos_f64", "the cosine's for f64",
    lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / cos(sqrt(z)), tiny, quarter**2, 5)
print("}  // namespace tigon::llvm::coefficients")
