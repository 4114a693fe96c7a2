"""Which rules the audit judges a decision by: those that its header names, else those that decided at its offset.

Rules change while payments come. The filter keeps each version in its checkpoint, with the offsets from which on it
decided, and where the topic ended then: the version before it can't have decided a payment that came later. Of what
lies before the first of them, and without a checkpoint, the given rules are taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import zip_longest

from fraud_filter.audit.gaps import Recorded
from fraud_filter.model.saved import SavedModel
from fraud_filter.oracle import Decision, Oracle, Place, Predicates
from fraud_filter.records import Source, why_unread
from fraud_filter.rules.ruleset import RuleSet
from fraud_filter.rules.version import DecisionRules
from fraud_filter.schema import SCORE, PaymentSchema


class KnownRules:
    """All rules of an audit, by number; 0 are the given ones."""

    def __init__(
        self,
        given: DecisionRules,
        recorded: Recorded | None = None,
        model_of: Callable[[RuleSet], SavedModel | None] = lambda _: None,
    ) -> None:
        """`model_of` reads the model of rules."""
        self._model_of = model_of
        kept = recorded.known_rules if recorded else {}
        self.all = [given, *(deciding for version, deciding in kept.items() if version != given.version)]
        self._numbers = {deciding.version: number for number, deciding in enumerate(self.all)}
        self._began = recorded.versions if recorded else []
        self._oracles: dict[object, Oracle] = {}
        #: By the number of rules: what reads for them, the same one where predicates alone differ, and what decides.
        self.oracle, self.predicates = cache(self._oracle), cache(self._predicates)
        #: Payments that were decided by other rules than those of their offset, as at the end of the former's time.
        self._also: dict[tuple[int, int], set[int]] = {}
        #: Decisions by the version in their header, and those by versions that are not known here.
        self.counted: Counter[str] = Counter()
        self.unknown = 0
        for number, deciding in enumerate(self.all):
            if deciding.rules.features:  # what remembers reads each payment, before its rules decide as well
                self.oracle(number)

    @property
    def columns(self) -> list[PaymentSchema]:
        """Of each set of rules: the fields that a flagged record has."""
        return [deciding.rules.columns(deciding.schema) for deciding in self.all]

    @property
    def results(self) -> set[str]:
        """Names of the fields of a flagged record that are the filter's own: features and score."""
        features = {feature.name for deciding in self.all for feature in deciding.rules.features}
        return features | {SCORE for deciding in self.all if deciding.rules.model}

    @property
    def remembering(self) -> list[Oracle]:
        """Those that compute features."""
        return [oracle for oracle in self._oracles.values() if oracle.remembers]

    def _oracle(self, number: int) -> Oracle:
        deciding = self.all[number]
        kind = deciding.schema, deciding.rules.features, deciding.velocity_payments, deciding.rules.model_version
        if kind not in self._oracles:
            model = self._model_of(deciding.rules)
            self._oracles[kind] = Oracle(deciding.schema, deciding.rules, deciding.velocity_payments, model)
        return self._oracles[kind]

    def _predicates(self, number: int) -> Predicates:
        deciding = self.all[number]
        return Predicates(deciding.rules, deciding.schema)

    def see(self, source: Source) -> int | None:
        """The rules that a decision is to be judged by; None: those of its header were replaced before it could be."""
        self.counted[source.version] += 1
        due = self._due(source.partition, source.offset)
        number = self._numbers.get(source.version)
        if number is None:
            self.unknown += source.version != ""
            return due
        times = self._times(source)
        ends = [end for begin, end in times if begin <= source.offset]
        if number == due or (times and not ends):
            return due
        if ends and all(end is not None and source.offset >= end for end in ends):
            return None
        self._also.setdefault((source.partition, source.offset), set()).add(number)
        return number

    def of(self, place: Place) -> tuple[int, ...]:
        """The rules that had to decide a payment, then others that did."""
        return self._due(place.partition, place.offset), *sorted(self._also.get(place[:2], ()))

    def decide(self, place: Place, key: bytes | None, value: bytes | None) -> dict[int, Decision]:
        """By these rules the decisions on a payment. The payments of a partition come in their order, without a gap."""
        unread = {
            number: why_unread(key, value, place.timestamp_ms, self.all[number].max_record_bytes)
            for number in self.of(place)
        }
        shown = None if all(unread.values()) else value
        oracles = set(map(self.oracle, unread)).union(self.remembering)
        reads = {oracle: oracle.read(shown, place) for oracle in oracles}
        return {
            number: Decision(reason, (), ()) if reason else self.predicates(number).judge(reads[self.oracle(number)])
            for number, reason in unread.items()
        }

    def _times(self, source: Source) -> list[tuple[int, int | None]]:
        """Each time that the named version decided: from which offset on, and before which, where that is known; an
        audit without a checkpoint knows of none.
        """
        number = source.partition
        return [
            (one.begin.get(number, 0), after.ends.get(number, 0) if after and after.ends is not None else None)
            for one, after in zip_longest(self._began, self._began[1:])
            if one.version == source.version
        ]

    def _due(self, partition: int, offset: int) -> int:
        """The rules that decided the offset last: what begins reads on from what is committed."""
        found = (one.version for one in reversed(self._began) if one.begin.get(partition, 0) <= offset)
        version = next(found, None)
        return 0 if version is None else self._numbers[version]
