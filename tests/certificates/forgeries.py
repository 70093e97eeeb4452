"""Files of certificates that are changed and sealed again, so that only their contents can betray them."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import warnings
import zipfile

import numpy as np

SEAL = 64  # hexadecimal digits at the end of a file


def read(path):
    """Return the documents "statement" and "witness" of a file, and its arrays."""
    with zipfile.ZipFile(path) as archive:
        facts = {name: json.loads(archive.read(f"{name}.json")) for name in ("statement", "witness")}
    with np.load(path) as file:
        return facts, {name: file[name] for name in file.files if not name.endswith(".json")}


def text(document):
    """Return the canonical text of a document; bytes are taken as they are."""
    if isinstance(document, bytes):
        return document
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def npy(array):
    """Return an array as the content of an NPY file; bytes are taken as they are."""
    if isinstance(array, bytes):
        return array
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=True)
    return file.getvalue()


def members_of(facts, arrays):
    """Return the contents of a file by member."""
    documents = {f"{name}.json": text(document) for name, document in facts.items()}
    return list((documents | {f"{name}.npy": npy(array) for name, array in arrays.items()}).items())


def packed(members, compression=zipfile.ZIP_STORED):
    """Return a sealed archive of some (name, content)."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.comment = b"0" * SEAL
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    raw = file.getvalue()[:-SEAL]
    return raw + hashlib.sha256(raw).hexdigest().encode()


def sealed(path, facts, arrays, **witness):
    """Write a file whose seal is right, whatever it claims, with some entries of the witness replaced."""
    facts = facts | {"witness": facts["witness"] | witness} if witness else facts
    path.write_bytes(packed(members_of(facts, arrays)))
    return path


# ----------------------------------------------------------------------------------------- mutations


def array_mutations(a, rng):
    """Yield (what, changed array) of an array: its shape, its type and its entries."""
    yield "an axis more", a[None]
    yield "an axis at the end", a[..., None]
    yield "flat", a.ravel()
    yield "float32", a.astype("<f4")
    yield "big-endian", a.astype(a.dtype.newbyteorder(">"))
    yield "bool", a.astype(bool)
    yield "the other type", a.astype("<i8" if a.dtype.kind == "f" else "<f8")
    yield "complex", a.astype("<c16")
    yield "object", a.astype(object)
    yield "text", a.astype("U8")
    yield "Fortran order", np.asfortranarray(a)
    if a.ndim:
        yield "lengthened", np.concatenate([a, a[-1:] if len(a) else np.zeros((1, *a.shape[1:]), a.dtype)])
        yield "doubled", np.concatenate([a, a])
        yield "empty", a[:0]
    if a.ndim and len(a):
        yield "shortened", a[:-1]
        yield "one entry", a[:1]
        yield "reversed", a[::-1].copy()
        yield "permuted", a[rng.permutation(len(a))]
    if a.ndim > 1:
        yield "transposed", np.ascontiguousarray(a.T)
        yield "last axes swapped", np.ascontiguousarray(np.swapaxes(a, -1, -2))
        yield "last axis shortened", np.ascontiguousarray(a[..., :-1])
    yield from entry_mutations(a, rng)


def entry_mutations(a, rng):
    """Yield (what, changed array) of the same shape and type."""
    yield "zero", np.zeros_like(a)
    yield "one", np.ones_like(a)
    yield "negated", -a
    if not a.size:
        return
    at = tuple(int(rng.integers(size)) for size in a.shape)
    values = {"entry + 1": a[at] + 1, "entry negated": -a[at], "entry zero": 0}
    if a.dtype.kind == "f":
        yield "negative zero", np.where(a == 0, -0.0, a)
        yield "larger", a * 1.5
        yield "a little larger", a * (1 + 1e-6)
        yield "noise", a * (1 + 1e-3 * rng.normal(size=a.shape))
        values |= {f"entry {v}": v for v in (np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e300)}
        values |= {"next double": np.nextafter(a[at], np.inf), "previous": np.nextafter(a[at], -np.inf)}
    else:
        values |= {f"entry {v}": v for v in (-1, 2, 2**40, -(2**63))}
    for what, value in values.items():
        changed = a.copy()
        changed[at] = value
        yield what, changed


OTHERS = [None, True, False, 0, 1, -1, 2, 1.0, 0.5, 10**30, "", "1", "inf", "nan", "-1", "1e9", "1/0", " 1"]
OTHERS += ["0x1.8p+1", "-inf", "1_0", "\u0661", "3/2", "9" * 20_001, [], [[]], ["1"], {}, {"a": 1}]


def places(document, path=()):
    """Yield the paths of all values of a document, by keys and positions."""
    for key in document if isinstance(document, dict) else range(len(document)):
        yield (*path, key)
        if isinstance(document[key], dict | list):
            yield from places(document[key], (*path, key))


def replaced(document, path, change):
    """Return a copy of a document in which change(container, key) was called for one place."""
    document = copy.deepcopy(document)
    container = document
    for key in path[:-1]:
        container = container[key]
    change(container, path[-1])
    return document


def document_mutations(document, rng):
    """Yield (what, changed document) where one value was removed, doubled, added or replaced."""
    for path in places(document):
        where = "/".join(map(str, path))
        yield f"{where} removed", replaced(document, path, lambda c, k: c.pop(k))
        value = OTHERS[int(rng.integers(len(OTHERS)))]
        yield f"{where} = {value!r:.20}", replaced(document, path, lambda c, k, v=value: c.__setitem__(k, v))
        inner = document
        for key in path:
            inner = inner[key]
        if isinstance(inner, bool):
            yield f"{where} flipped", replaced(document, path, lambda c, k: c.__setitem__(k, not c[k]))
        elif isinstance(inner, int):
            for step in (-1, 1):
                yield (
                    f"{where} + {step}",
                    replaced(document, path, lambda c, k, s=step: c.__setitem__(k, c[k] + s)),
                )
        elif isinstance(inner, str):
            for v in (f"-{inner}", f"{inner}0", f"0{inner}", f"{inner} ", "0", f"{inner}/2"):
                yield f"{where} = {v:.20}", replaced(document, path, lambda c, k, v=v: c.__setitem__(k, v))
        elif isinstance(inner, list):
            longer = [*inner, inner[-1] if inner else "0"]
            yield f"{where} longer", replaced(document, path, lambda c, k, v=longer: c.__setitem__(k, v))
            yield f"{where} empty", replaced(document, path, lambda c, k: c.__setitem__(k, []))
        else:
            yield f"{where} with a key more", replaced(document, path, lambda c, k: c[k].update(more=1))
    key = sorted(document)[0]
    entry = json.dumps(key) + ":" + json.dumps(document[key])
    yield "a key doubled", text(document).replace(b"{", b"{" + entry.encode() + b",", 1)
    yield "a key more", document | {"more": 1}
    yield "spaces", json.dumps(document, sort_keys=True).encode()
    yield (
        "another order",
        json.dumps(dict(sorted(document.items(), reverse=True)), separators=(",", ":")).encode(),
    )
    yield "cut", text(document)[:-1]
    yield "UTF-16", text(document).decode().encode("utf-16")
    yield "a list", text([document])


def claims_beyond(facts):
    """Return (what, claims) that are better than the claims of a file, weaker, or none."""
    lower, upper = (float.fromhex(facts["witness"][k]) for k in ("lower", "upper"))
    size = 1e-3 * max(1.0, abs(lower) if np.isfinite(lower) else 1.0)
    return [
        (", a better lower claim", {"lower": (upper + size).hex()}),
        (", a better upper claim", {"upper": (lower - size).hex()}),
        (", weaker claims", {"lower": (lower - size).hex(), "upper": (upper + size).hex()}),
        (", infeasible", {"infeasible": True, "lower": "inf", "upper": "inf"}),
    ]


def same(a, b):
    """Whether two arrays give the same file."""
    return (a.dtype.str, a.shape, a.tobytes(), npy(a)) == (b.dtype.str, b.shape, b.tobytes(), npy(b))


def mutations(facts, arrays, rng):
    """Yield (what, make): make() gives the bytes of a file with one change, sealed again.

    The arrays, the documents and the archive are changed in turn. Changes of arrays and of the witness come
    with the claims of the file, with weaker claims, and with claims that are too good.

    Parameters
    ----------
    facts, arrays : dict
        As `read` returns them.
    rng : numpy.random.Generator
        It chooses the entries that change, and the other values of the documents.
    """

    def file(stated, changed, more=()):
        return lambda: doubled([*members_of(stated, changed), *more])

    claims = [("", {}), *claims_beyond(facts)]
    for name, a in arrays.items():
        for what, changed in array_mutations(a, rng):
            for claimed, better in claims if not same(changed, a) else ():
                stated = facts | {"witness": facts["witness"] | better}
                yield f"{name} {what}{claimed}", file(stated, arrays | {name: changed})
        fewer = {k: v for k, v in arrays.items() if k != name}
        yield f"{name} removed", file(facts, fewer)
        yield f"{name} renamed", file(facts, fewer | {f"{name}9": a})
        yield f"{name} there twice", file(facts, arrays, [(f"{name}.npy", npy(a))])
        yield f"{name} of NPY version 2", file(facts, arrays | {name: version_two(a)})
        yield f"{name} with bytes more", file(facts, arrays | {name: npy(a) + b"\0" * 8})
    for name, document in facts.items():
        for what, changed in document_mutations(document, rng):
            for claimed, better in claims if name == "witness" and isinstance(changed, dict) else claims[:1]:
                stated = changed | better if better else changed
                yield f"{name}.json {what}{claimed}", file(facts | {name: stated}, arrays)
        yield f"{name}.json removed", file({k: v for k, v in facts.items() if k != name}, arrays)
    members = members_of(facts, arrays)
    yield "a member more", file(facts, arrays, [("more.npy", npy(np.zeros(1)))])
    yield "a directory more", file(facts, arrays, [("more/", b"")])
    yield "another order of the members", lambda: packed(members[::-1])
    yield "compressed", lambda: packed(members, zipfile.ZIP_DEFLATED)


def doubled(members):
    """Return an archive that may have a member twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of the name
        return packed(members)


def version_two(a):
    """Return an array as the content of an NPY file of version 2.0."""
    file = io.BytesIO()
    np.lib.format.write_array(file, a, version=(2, 0))
    return file.getvalue()
