"""What is printed, read back: the text of a dual as a problem of cvxpy, by a parser of its own."""
# ruff: noqa: E501, S105 - tables of tokens

from __future__ import annotations

import re

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.wraps import symmetric_wrap

TOKEN = re.compile(
    r"\s*(log sum exp|sum of columns|sum of rows|weighted geo mean|log det|geo mean|by columns|by rows|sum_i|[A-Za-z]+\d*_[mi]\b"
    r"|[A-Za-z]\w*\[[^\]\[=]*[A-Za-z>][^\]\[=]*\]|[A-Za-z]\w*|\d+\.?\d*(?:e[-+]?\d+)?|[|'^_+*/()\[\],;:<>=-])"
)
FUNCTIONS = {
    "sum": cp.sum, "tr": cp.trace, "log": cp.log, "exp": cp.exp, "sqrt": cp.sqrt, "diag": cp.diag, "Diag": cp.diag,
    "log det": cp.log_det, "log sum exp": cp.log_sum_exp, "geo mean": cp.geo_mean, "vec": lambda e: cp.vec(e, order="F"), "mat": lambda e: mat(e), "sum_largest": cp.sum_largest, "sum of columns": lambda e: cp.sum(e, axis=0), "sum of rows": lambda e: cp.sum(e, axis=1), "weighted geo mean": None, "max": None, "min": None,
    "lambda_max": cp.lambda_max,
}  # fmt: skip


class Parser:
    """A parser of one expression; `names` has the data and the variables."""

    def __init__(self, text, names):
        self.names, self.tokens, self.at = names, self.split(text), 0

    def split(self, text):
        tokens, at = [], 0
        while at < len(text.rstrip()):
            found = TOKEN.match(text, at)
            if not found:
                raise Unread(text[at:])
            tokens.append(found[1])
            at = found.end()
        return tokens

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        assert wanted is None or token == wanted, f"{wanted} and not {token} in {self.tokens}"
        self.at += 1
        return token

    def whole(self):
        found = self.sum()
        assert not self.peek(), f"{self.tokens[self.at :]} is left of {self.tokens}"
        return found

    def sum(self):
        sign = -1 if self.peek() == "-" and self.take() else 1
        found = signed(sign, self.product())
        while self.peek() in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            found = plus(found, signed(sign, self.product()))
        return found

    def product(self):
        if self.peek() == "sum_i":
            self.take()
            start = self.at
            total, i = None, 1
            while any(
                re.fullmatch(r"[A-Za-z]+_i", t) and t[:-1].rstrip("_") + str(i) in self.names
                for t in self.tokens
            ):
                self.at = start
                inner = Parser(
                    "",
                    {
                        **self.names,
                        **{
                            t: self.names[t[:-2] + str(i)]
                            for t in self.tokens
                            if t.endswith("_i") and t != "sum_i"
                        },
                    },
                )
                inner.tokens, inner.at = self.tokens, start
                term = inner.product()
                total, end = term if total is None else total + term, inner.at
                i += 1
            self.at = end
            return total
        parts = [self.factor()]
        while True:
            token = self.peek()
            if token == "*":
                self.take()
                other, _ = self.factor()
                parts = [(cp.multiply(joined(parts), other), False)]
            elif token == "/":
                self.take()
                parts = [(quotient(joined(parts), self.factor()[0]), False)]
            elif token == "log":
                self.take()
                x = parts.pop()[0]
                y = self.argument()
                entire = not x.is_constant() or getattr(y, "ratio", None) is not None
                parts.append((entropy(x, y) if entire else x * cp.log(y), False))
            elif token and (
                token[0].isalnum() or token in "([" or (token == "|" and self.opens()) or (token == "<" and
                self.peek_inner())
            ):  # fmt: skip
                parts.append(self.factor())
            else:
                return joined(parts)

    def argument(self):
        if self.peek() != "(":
            return self.factor()[0]
        self.take("(")
        found = self.nested()
        self.take(")")
        return found

    def opens(self):
        return self.bars_open()

    def bars_open(self):
        return getattr(self, "depth", 0) == 0

    def peek_inner(self):
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1] != "="

    def factor(self):
        """A value, and whether it is a transposed vector."""
        found = self.atom()
        row = False
        while self.peek() in ("'", "^", "["):
            token = self.take()
            if token == "[":
                found = found[self.key()]
                continue
            if token == "'" and type(found).__name__ == "Constant" and found.size == 1:
                found, row = Row(), True
                continue
            if token == "'":
                row = not row if found.ndim == 1 else row
                found = found.T if found.ndim == 2 else found
                continue
            if self.peek() == "+":
                self.take()
                found = Inverse(found)
                continue
            exponent = self.exponent()
            found = Square(found) if exponent == 2 and found.size == 1 else cp.power(found, exponent)
        return found, row

    def exponent(self):
        sign = -1 if self.peek() == "-" and self.take() else 1
        if self.peek() == "(":
            self.take()
            a = float(self.take())
            b = float(self.take()) if self.peek() == "/" and self.take() else 1.0
            self.take(")")
            return sign * a / b
        return sign * (np.inf if self.peek() == "inf" and self.take() else float(self.take()))

    def atom(self):
        token = self.take()
        if token[0].isdigit():
            value = float(token)
            if self.peek() == "/" and self.tokens[self.at + 1][0].isdigit():
                self.take()
                value /= float(self.take())
            return cp.Constant(value)
        if token == "(":
            return self.bracket()
        if token == "[":
            return self.block()
        if token == "|":
            return self.bars()
        if token == "<":
            one = self.sum()
            self.take(",")
            other = self.sum()
            self.take(">")
            m, n = (
                min(one.shape[k], other.shape[k]) for k in (0, 1)
            )  # a stack and its block have one letter
            return cp.sum(cp.multiply(one[:m, :n], other[:m, :n]))
        if token not in self.names and token not in FUNCTIONS and self.peek() == "(" and hasattr(cp, token):
            return self.call(token)
        if token in FUNCTIONS and (self.peek() == "(" or token in ("log", "log det")):
            return self.call(token)
        if token == "I":
            return Eye()
        return self.names[token]

    def key(self):
        """The key of an index, such as 1:3, 0."""
        depth, start = 1, self.at
        while depth:
            token = self.take()
            depth += (token == "[") - (token == "]")
        parts = re.findall(r"\[.*?\]|[^,]+", "".join(self.tokens[start : self.at - 1]))
        keys = [
            [int(n) for n in part[1:-1].split(",")]
            if part[0] == "["
            else slice(*(int(n) if n else None for n in part.split(":")))
            if ":" in part
            else int(part)
            for part in parts
        ]
        return keys[0] if len(keys) == 1 else tuple(keys)

    def call(self, name):
        if self.peek() != "(":  # p log p
            return FUNCTIONS[name](self.factor()[0])
        self.take("(")
        args = [self.nested()]
        while self.peek() == ",":
            self.take()
            args.append(self.nested())
        self.take(")")
        if self.peek() in ("by columns", "by rows"):
            axis = ("by columns", "by rows").index(self.take())
            return {**FUNCTIONS, "max": cp.max, "min": cp.min}[name](args[0], axis=axis)
        if name == "von_neumann_entr":
            return cp.von_neumann_entr(symmetric_wrap(args[0]))
        if name in ("max", "min"):
            one, many = (cp.max, cp.maximum) if name == "max" else (cp.min, cp.minimum)
            return one(args[0]) if len(args) == 1 else many(*args)
        if name == "sum_largest":
            k = float(args[1].value)
            return cp.sum_largest(args[0], int(k) if k == int(k) else k)
        if name == "log" and re.match(r"(Promote\(1.0, .*?\)|1.0) \+ exp\(", args[0].name()):
            return cp.logistic(args[0].args[1].args[0])  # which is printed as log(1 + exp(x))
        if name == "weighted geo mean":
            return cp.geo_mean(args[0], args[1].value)
        if name == "sqrt" and getattr(args[0], "of_square", None) is not None:
            return cp.norm2(args[0].of_square)
        if name not in FUNCTIONS:
            return getattr(cp, name)(*(a.value if k and a.is_constant() else a for k, a in enumerate(args)))
        return FUNCTIONS[name](args[0])

    def nested(self):
        depth, self.depth = getattr(self, "depth", 0), 0
        found = self.sum()
        self.depth = depth
        return found

    def bracket(self):
        close = self.matching()
        parts = [self.each(close)]
        while self.peek() == ",":
            self.take()
            parts.append(self.nested())
        self.take(")")
        if self.peek() == "_" and self.tokens[self.at + 1] == "+":
            self.at += 2
            return positive(parts[0])
        if self.peek() == "_" and self.tokens[self.at + 1] == "m":
            self.at += 2
        if len(parts) == 1:
            return parts[0]
        return cp.hstack([self.zeros(parts) if p.is_constant() and not np.any(p.value) else p for p in parts])

    def zeros(self, parts):
        """The zeros that fill a vector up to the order of the matrices."""
        filled = max(p.size for p in parts)
        shapes = [np.shape(value) for value in self.names.values()]
        orders = [shape[-1] for shape in shapes if len(shape) > 1 and shape[-1] == shape[-2] > filled]
        return cp.Constant(np.zeros(max(orders, default=filled + 2) - filled))

    def each(self, close):
        """The inside of (...)_m once for each kernel, else the inside."""
        stacked = self.tokens[close + 1 : close + 3] == ["_", "m"]
        names = {t for t in self.tokens[self.at : close] if t.endswith("_m")}
        if not (stacked and names):
            return self.nested()
        count, start, found = min(len(self.names[n]) for n in names), self.at, []
        for m in range(count):
            inner = Parser("", {**self.names, **{n: cp.Constant(self.names[n][m]) for n in names}})
            inner.tokens, inner.at = self.tokens, start
            value = inner.nested()
            found.append(value[m] if value.ndim == 1 and value.size == count else value)
            self.at = inner.at
        return cp.hstack(found)

    def matching(self):
        depth = 1
        for k in range(self.at, len(self.tokens)):
            depth += (self.tokens[k] in "([") - (self.tokens[k] in ")]")
            if depth == 0:
                return k
        raise AssertionError(self.tokens)

    def bars(self):
        depth, self.depth = getattr(self, "depth", 0), 1
        inside = self.sum()
        self.depth = depth
        self.take("|")
        if self.peek() == "_":
            self.take()
            kind = self.peek()
            if kind in ("F", "op") or kind == "*":
                self.take()
                if isinstance(inside, Positive):
                    self.take("^"), self.take("2")
                    return Square(inside)
                return {"F": lambda e: cp.norm(e, "fro"), "op": cp.sigma_max, "*": cp.normNuc}[kind](inside)
            p = self.exponent()
            axis = {"by columns": 0, "by rows": 1}.get(self.peek())
            if axis is not None and inside.ndim < 2:
                raise Unread("a number in all entries of a matrix")
            if axis is not None:
                self.take()
            flat = inside if axis is not None or inside.ndim == 1 else cp.vec(inside, order="F")
            return (
                cp.pnorm(flat, p, axis=axis)
                if p not in (1, np.inf)
                else (cp.norm1 if p == 1 else cp.norm_inf)(flat, axis=axis)
            )
        if self.peek() == "^" and self.tokens[self.at + 1] == "2":
            self.at += 2
            return Square(inside)
        return cp.abs(inside)

    def block(self):
        rows = [[self.nested()]]
        while self.peek() in (",", ";"):
            if self.take() == ",":
                rows[-1].append(self.nested())
            else:
                rows.append([self.nested()])
        self.take("]")
        if all(len(row) == 1 for row in rows):
            size = max(row[0].size for row in rows)
            return cp.vstack([row[0] if row[0].size == size else cp.promote(row[0], (size,)) for row in rows])
        if [len(row) for row in rows] != [2, 2]:
            raise Unread("a block matrix")
        (S, z), (_, c) = rows
        if z.ndim == 2:
            S, c = (e.of(n) if isinstance(e, Eye) else e for e, n in ((S, z.shape[0]), (c, z.shape[1])))
            return cp.bmat([[S, z], [z.T, c]])
        S = S.of(z.size) if isinstance(S, Eye) else S
        column = cp.reshape(z, (z.size, 1), order="F")
        return cp.bmat([[S, column], [column.T, cp.reshape(c, (1, 1), order="F")]])


class Unread(Exception):
    """A part whose meaning needs a shape that is not in print."""


class Row:
    """The row 1' of ones, of the size of what it multiplies."""

    size, ndim, shape = 1, 1, (1,)


class Inverse:
    """The inverse of a matrix, in a form x' K^+ x."""

    def __init__(self, of):
        self.of, self.ndim, self.size, self.shape = of, 2, of.size, of.shape


class Eye:
    """A multiple of the identity, of the size of what it is added to."""

    size, ndim, shape = 4, 2, (1, 1)  # larger than one

    def __init__(self, factor=1.0):
        self.factor = factor
        self.T = self

    def __rmul__(self, k):
        return Eye(k * self.factor)

    def __mul__(self, k):
        return Eye(self.factor * k)

    def is_constant(self):
        return False

    def of(self, n):
        return self.factor * np.eye(n)


def Square(e):
    """|e|^2, whose denominator may follow; of a positive part of a matrix by its eigenvalues."""
    if isinstance(e, Positive):
        P = cp.Variable(e.of.shape, symmetric=True)
        found = cp.sum_squares(P)
        found.above = [P - e.of >> 0]
        EXTRA.extend(found.above)
        return found
    found = cp.sum_squares(e)
    found.of_square = e
    return found


EXTRA = []  # constraints of positive parts


def signed(sign, e):
    """An expression, or its negative."""
    return e if sign > 0 else -1 * e


class Positive:
    """(G)_+ of a matrix."""

    def __init__(self, of):
        self.of, self.ndim, self.size, self.shape = of, 2, of.size, of.shape


def positive(e):
    """(e)_+, by the eigenvalues of a symmetric matrix."""
    return Positive(e) if e.ndim == 2 else cp.pos(e)


def square_of(e):
    """x with e = k |x|^2, and k."""
    if getattr(e, "of_square", None) is not None:
        return 1.0, e.of_square
    if type(e).__name__ == "multiply":
        for k, a in enumerate(e.args):
            if a.is_constant() and getattr(e.args[1 - k], "of_square", None) is not None:
                return float(a.value), e.args[1 - k].of_square
    return 1.0, None


def mat(e):
    """The matrix of which a vector lists the entries; text has no shapes, and it is taken for a square one."""
    n = round(np.sqrt(e.size))
    if n * n != e.size:
        raise Unread("mat")
    return cp.reshape(e, (n, n), order="F")


def quotient(top, bottom):
    k, of = square_of(top)
    if of is not None and not bottom.is_constant():
        return k * cp.quad_over_lin(of, bottom)
    found = top / bottom
    found.ratio = (top, bottom)
    return found


def scaled(k, e):
    """k e of a number k, which may be a ratio still."""
    found = k * e
    if getattr(e, "ratio", None):
        found.ratio = (k * e.ratio[0], e.ratio[1])
    return found


def entropy(x, argument):
    """x log(y), of y = k x or y = k x / z, at a point where k is a number."""
    top, bottom = getattr(argument, "ratio", (argument, cp.Constant(1.0)))
    rng = np.random.default_rng(0)
    k = []
    for _ in range(2):
        for v in {*x.variables(), *top.variables()}:
            v.save_value(rng.normal(size=v.shape))
        k.append(np.ravel(top.value / x.value))
    if np.ptp(k) > 1e-9 * np.abs(k).max():
        raise Unread("an entropy of other expressions")
    return cp.rel_entr(x, bottom / np.mean(k))


def plus(a, b):
    """A sum, in which a number is added to every entry, and the identity has the size of the others."""
    if isinstance(a, Eye) and isinstance(b, Eye):
        return Eye(a.factor + b.factor)
    if isinstance(a, Eye):
        return a.of(b.shape[0]) + b
    return a + b.of(a.shape[0]) if isinstance(b, Eye) else a + b


def joined(parts):
    """The product of factors, each with whether it is a row."""
    if len(parts) >= 3:
        (a, row), (K, _), (b, _) = parts[-3:]
        if isinstance(K, Inverse):
            return joined([*parts[:-3], (cp.matrix_frac(a, K.of), False)])
        if row and not isinstance(K, Eye) and K.ndim == 2 and K.shape[0] > a.size:
            K = K[: a.size, : a.size]  # a stack and its block on the labelled points have one letter
        if (
            row
            and not isinstance(K, Eye)
            and K.ndim == 2
            and K.is_constant()
            and str(a) == str(b)
            and not a.is_constant()
        ):
            values, vectors = np.linalg.eigh(K.value)
            form = Square((vectors * np.sqrt(np.maximum(values, 0))).T @ a)
            return joined([*parts[:-3], (form, False)])
    found, row = parts[0]
    for other, next_row in parts[1:]:
        if isinstance(other, Eye) or isinstance(found, Eye):
            found = other * found if isinstance(other, Eye) else found * other
        elif isinstance(other, Row):  # s 1 1'
            pass
        elif isinstance(found, Row):
            found, row = (cp.sum(other, axis=0), True) if other.ndim == 2 else (cp.sum(other), False)
        elif found.size > 1 == other.size and found.ndim == 2:  # A (s 1)
            found, row = cp.sum(found, axis=1) * other, False
        elif found.size > 1 == other.size and row:
            found, row = cp.sum(found) * other, False
        elif found.size == 1 or other.size == 1:
            found, row = scaled(found, other), next_row if found.size == 1 else row
        elif found.ndim == 1 and other.ndim == 1:
            if row:
                found, row = found @ other, False
            elif next_row:
                found = cp.reshape(found, (found.size, 1), order="F") @ cp.reshape(
                    other, (1, other.size), order="F"
                )
            else:
                found = cp.multiply(found, other)
        elif found.ndim == 1 and row:
            found = other.T @ found
        else:
            found, row = found @ other, False
    return found
