# SPDX-License-Identifier: Apache-2.0
"""Every bound in one place, with its unit last in its name.

Code checks a bound before it allocates the memory that the bound protects. The defaults fit an
agent's state with a wide margin; `Registry(limits=Limits(value_bytes_max=...))` sets others for one
store. Bounds of the format itself, which no setting can change, are the constants below the class.
"""

from dataclasses import dataclass, fields

__all__ = [
    "AGENT_LEVELS_MAX",
    "ANSWER_BYTES_MAX",
    "AUDIT_CHECKPOINTS_MAX",
    "AUDIT_RESULTS_MAX",
    "BLOB_BYTES_LEAST",
    "BODY_BYTES_MAX",
    "BUNDLE_BYTES_MAX",
    "BUNDLE_LINE_BYTES_MAX",
    "DECODE_DEPTH_MAX",
    "ENCODE_DEPTH_MAX",
    "HEADER_BYTES_MAX",
    "IMPORT_FILE_BYTES_MAX",
    "IMPORT_VALUE_BYTES_MAX",
    "JSON_DEPTH_MAX",
    "LANE_BYTES_MAX",
    "MODEL_DEPTH_MAX",
    "MODEL_DIMENSIONS_MAX",
    "MODEL_ELEMENTS_MAX",
    "MODEL_EXPANDED_BYTES_LEAST",
    "MODEL_FOLDER_DEPTH_MAX",
    "MODEL_FOLDER_FILES_MAX",
    "MODEL_HEADER_BYTES_MAX",
    "MODEL_NAME_BYTES_MAX",
    "MODEL_NODES_MAX",
    "MODEL_PICKLE_BYTES_MAX",
    "MODEL_SYMBOLS_BYTES_LEAST",
    "MODEL_SYMBOLS_BYTES_MAX",
    "MODEL_TENSORS_MAX",
    "NAME_BYTES_MAX",
    "PAYLOAD_BYTES_MAX",
    "POLICY_BYTES_MAX",
    "POSITION_LIST_BYTES_MAX",
    "QUESTION_BYTES_MAX",
    "REASON_BYTES_MAX",
    "REQUEST_ANSWERS_MAX",
    "REQUEST_BYTES_MAX",
    "ROLLOUTS_PER_RESUME_MAX",
    "ROLLOUT_DAYS_MAX",
    "ROLLOUT_DIFFERENCES_MAX",
    "ROSTER_COPY_BYTES_MAX",
    "RUN_LEASE_SECONDS",
    "SCAN_DEPTH_MAX",
    "SCAN_FINDINGS_MAX",
    "SCAN_MEMBERS_LEAST",
    "SCAN_MEMBERS_MAX",
    "SCAN_MEMBER_BYTES_LEAST",
    "SCAN_RATIO_MAX",
    "SCAN_UNPACKED_BYTES_LEAST",
    "SCAN_UNPACKED_BYTES_MAX",
    "SEALS_BYTES_MAX",
    "SEALS_MAX",
    "SQL_OPEN_STEPS_MAX",
    "SQL_STEPS_MAX",
    "STATEMENT_BYTES_MAX",
    "STATE_MEMORY_BYTES_MAX",
    "UNREPORTED_REFUSALS_MAX",
    "VERIFY_ROUNDS_MAX",
    "WATCH_AGAIN_MAX",
    "WATCH_EVENTS_MAX",
    "WATCH_PAGE_MAX",
    "WATCH_PATROL_MAX",
    "WORLD_BYTES_MAX",
    "Limits",
]

_KIB = 1024
_MIB = 1024 * _KIB

ENCODE_DEPTH_MAX = 255
"""Nesting depth of lists and dicts within one extension, for a writer."""

DECODE_DEPTH_MAX = 1023
"""The same for a reader, at one level of a path; at the others the writer's bound holds."""

BLOB_BYTES_LEAST = 64 * _KIB
"""The minimum of `blob_bytes_max`: a small state must fit into one blob."""

HEADER_BYTES_MAX = 4 * _KIB
"""The header of one entry."""

SEALS_MAX = 16
"""Signatures on one entry."""

SEALS_BYTES_MAX = 8 * _KIB
"""All signatures of one entry, in their stored form."""

BODY_BYTES_MAX = 1 * _MIB
"""The body of one entry: metadata, names, reasons; the payload is in blobs."""

POSITION_LIST_BYTES_MAX = 64 * _MIB
"""The list of one key's last accepted positions: 56 bytes for each thread that it wrote."""

ROSTER_COPY_BYTES_MAX = 1024 * _MIB
"""A copy of the store chain with its lists, as `sealpoint roster export` writes it."""

BUNDLE_BYTES_MAX = 16 * 1024 * _MIB
"""An evidence bundle as a whole; no program holds all of it in memory."""

BUNDLE_LINE_BYTES_MAX = 96 * _MIB
"""One line of a bundle: a list of the store chain, in base 64."""

REQUEST_ANSWERS_MAX = 256
"""Answers to one request, recorded by one key, that count."""

REQUEST_BYTES_MAX = 256 * _MIB
"""An exported request, with its whole thread except for the states."""

PAYLOAD_BYTES_MAX = 16 * _KIB
"""The root blob of a checkpoint when it is stored with its entry instead of among the blobs."""

JSON_DEPTH_MAX = 32
"""Nesting depth of lists and objects in metadata, a world, a question or an answer."""

NAME_BYTES_MAX = 512
"""The name of a thread, namespace or identity, or a checkpoint's id, in UTF-8."""

LANE_BYTES_MAX = 4096
"""The name of a lane, which names every graph that contains it, or the path of a task."""

WORLD_BYTES_MAX = 512 * _KIB
"""The JSON of one world."""

AGENT_LEVELS_MAX = 8
"""Nesting depth of sub-agents in one world."""

POLICY_BYTES_MAX = 64 * _KIB
"""The file of one policy."""

STATEMENT_BYTES_MAX = 192 * _KIB
"""A statement in its stored form."""

REASON_BYTES_MAX = 4 * _KIB
"""A reason that a person gives, in UTF-8."""

ROLLOUT_DIFFERENCES_MAX = 1_024
"""Differences in one rollout: every resume that the rollout allows carries its statement."""

ROLLOUTS_PER_RESUME_MAX = 4
"""Rollouts that together accept the differences of one resume, which carries all of them."""

ROLLOUT_DAYS_MAX = 90
"""The longest duration of a rollout."""

ANSWER_BYTES_MAX = 128 * _KIB
"""The answer to a pending question, as JSON; a request with such an answer still fits its entry."""

QUESTION_BYTES_MAX = 256 * _KIB
"""The questions of a run that an adapter shows to people, as JSON."""

AUDIT_CHECKPOINTS_MAX = 256
"""The number of a thread's newest checkpoints for which an audit can reproduce the release. For a
resume from an older one, the audit checks everything except the digest, a question, copies and
deletions."""

AUDIT_RESULTS_MAX = 64 * _KIB
"""The number of task results waiting for a checkpoint that an audit reads; a thread with more of
them is not judged, which is a finding."""

UNREPORTED_REFUSALS_MAX = 1024
"""Errors of subgraphs that an adapter keeps until the enclosing graphs get them."""

RUN_LEASE_SECONDS = 30
"""How long the run of a vanished machine keeps its thread, if only a clock can detect that."""
STATE_MEMORY_BYTES_MAX = 64 * _MIB
"""The memory of an open store for the states that it saved and loaded last, over all threads, so
that unchanged parts are not encoded, hashed and fetched again."""

VERIFY_ROUNDS_MAX = 8
"""How often a verification restarts one thread because more of it was given up in the meantime."""

WATCH_EVENTS_MAX = 4096
"""Events that a watch of a store keeps; a caller that asks for older ones reads everything
again."""

WATCH_PAGE_MAX = 1000
"""Threads, or entries of a thread, on one page of a watch."""

WATCH_AGAIN_MAX = 256
"""Threads that did not verify and that one refresh of a watch checks again."""

WATCH_PATROL_MAX = 32
"""Threads that did not move and whose newest entry one refresh of a watch compares."""

SQL_OPEN_STEPS_MAX = 5_000
"""SQLite steps to open the file of a store and check its tables; this normally takes 150."""

SQL_STEPS_MAX = 1_000_000
"""SQLite steps for one statement; the longest, the ends of 1024 threads, takes 65,000."""

MODEL_HEADER_BYTES_MAX = 32 * _MIB
"""The header of a safetensors file, including the structure in it."""

MODEL_TENSORS_MAX = 128 * _KIB
"""Tensors in one model file, and records in one `.pt` archive."""

MODEL_DIMENSIONS_MAX = 64
"""Dimensions of one tensor of a model file."""

MODEL_ELEMENTS_MAX = 1 << 40
"""Product of the dimensions of one tensor of a model file, dimensions of 0 counted as 1."""

MODEL_NAME_BYTES_MAX = 2 * _KIB
"""The name of one tensor of a model file, in UTF-8."""

MODEL_PICKLE_BYTES_MAX = 64 * _MIB
"""The pickle of a `.pt` file: everything in it except the tensors' elements."""

MODEL_DEPTH_MAX = 128
"""Nesting depth of lists, dicts and other values in a `.pt` file."""

MODEL_NODES_MAX = 4 * _MIB
"""Values in a `.pt` file, each counted wherever it is used; also in the structure of our own
files."""

MODEL_SYMBOLS_BYTES_LEAST = 42 * _MIB
"""The approximate memory for the symbols of all pickles of a file, in addition to the size of the
file; symbols that take long to process count for more than their memory."""

MODEL_SYMBOLS_BYTES_MAX = 512 * _MIB
"""The maximum for them in any case, regardless of the size of the file."""

MODEL_EXPANDED_BYTES_LEAST = 64 * _MIB
"""The size that a tensor with repeated elements may have; the size of its file, if that is
larger."""

MODEL_FOLDER_FILES_MAX = 16 * _KIB
"""Files and directories in one sealed folder."""

MODEL_FOLDER_DEPTH_MAX = 16
"""Nesting depth of directories in a sealed folder."""

SCAN_DEPTH_MAX = 6
"""Nesting depth of archives, compressed streams and pickles that a scan enters."""

SCAN_MEMBERS_MAX = 256 * _KIB
"""Members of all archives inside one scanned file."""

SCAN_MEMBERS_LEAST = 8 * _KIB
"""The number of members that any file may have; more need the bytes below for each."""

SCAN_MEMBER_BYTES_LEAST = 512
"""The bytes of the file per member beyond that number: each member takes time, however small."""

SCAN_UNPACKED_BYTES_MAX = 256 * _MIB
"""The total size of everything unpacked from one scanned file."""

SCAN_UNPACKED_BYTES_LEAST = 16 * _MIB
"""The unpacked size that any scanned file may have, however small the file is."""

SCAN_RATIO_MAX = 256
"""The factor by which a scanned file may grow when unpacked, beyond the bytes above."""

SCAN_FINDINGS_MAX = 200
"""Findings that a scan keeps of one file; one more says that there were more."""

IMPORT_FILE_BYTES_MAX = 64 * _MIB
"""One imported file of another storage."""

IMPORT_VALUE_BYTES_MAX = 256 * _MIB
"""The size of the values of such a file, each counted wherever it is used: 64 bytes, and its
text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of one registry or store."""

    value_bytes_max: int = 1024 * _MIB
    """One value: its flat encoding, or all the bytes its tree expands to."""

    value_nodes_max: int = 32 * _MIB
    """Objects in one value; a value of fewer bytes cannot hold more, so it is not counted."""

    depth_max: int = ENCODE_DEPTH_MAX
    """Nesting depth of lists and dicts; a lower bound is checked by walking each value."""

    extension_depth_max: int = 24
    """Nesting depth of values that are not plain (a tuple, a set, an application type)."""

    costly_values_max: int = 64 * _KIB
    """Values that cost much more than their bytes, in one value: paths, IP networks and interfaces,
    scoped addresses, deques, OrderedDicts and defaultdicts."""

    colliding_keys_max: int = 16
    """Keys of one dict or members of one set that share one hash."""

    fraction_keys_max: int = 1024
    """Fractions among all keys and members of one value (Python caches their hashes together)."""

    key_probes_max: int = 24
    """Probes per key, on average, for building a large dict or set."""

    int_bytes_max: int = 64 * _KIB
    """One integer beyond 64 bits."""

    key_int_bytes_max: int = 256
    """One int among several keys or members (comparing it can cost the square of this)."""

    range_part_bytes_max: int = 2 * _KIB
    """Start, stop or step of one range (its length costs the square of this)."""

    fraction_part_bytes_max: int = 2 * _KIB
    """Numerator or denominator of one fraction (proving it lowest costs the square of this)."""

    decimal_digits_max: int = 4096
    """Digits of one Decimal."""

    decimal_exponent_max: int = 2_000_000
    """Exponent of one Decimal, either sign."""

    text_bytes_max: int = 64 * _KIB
    """The text of one path or network address."""

    array_dimensions_max: int = 32
    """Dimensions of one array or tensor."""

    array_elements_max: int = 1 << 40
    """Product of the dimensions of one array or tensor, dimensions of 0 counted as 1."""

    blob_bytes_max: int = 16 * _MIB
    """One blob of a tree."""

    tree_levels_max: int = 12
    """Index levels above the chunks of one split container or byte string."""

    reference_depth_max: int = 4
    """Nesting depth of split containers."""

    def fault(self) -> str | None:
        """Return why these cannot be the bounds of a store, or None; `Registry` calls it."""
        for field in fields(self):
            value: object = getattr(self, field.name)
            if type(value) is not int or value < 1:
                return f"limit {field.name}: expected a positive whole number, found {value!r}"
        if self.depth_max > ENCODE_DEPTH_MAX:
            return f"limit depth_max: expected at most {ENCODE_DEPTH_MAX}, found {self.depth_max}"
        if self.blob_bytes_max < BLOB_BYTES_LEAST:
            return (
                f"limit blob_bytes_max: expected at least {BLOB_BYTES_LEAST}, "
                f"found {self.blob_bytes_max}"
            )
        return None
