"""Compute for about 50 ms, the start of the interpreter included."""

total = 0
for number in range(150_000):
    total += number * number
