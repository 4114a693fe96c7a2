"""A state of many cards: each of them pays once."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from fraud_filter.config import Settings
from lab.harness.drain import write_input

#: Of no rule's kind.
_PAYMENT = {
    "amount": 20.0, "currency": "EUR", "merchant": "Corner shop", "merchant_category": "groceries", "country": "DE",
    "card_country": "DE",
}  # fmt: skip


def send_cards(settings: Settings, cards: int) -> None:
    """Sends a payment of each card, by the generator's names: its own payments are of some of them."""
    now = datetime.now(UTC).isoformat()

    def record(card: str) -> dict[str, bytes]:
        value = {**_PAYMENT, "payment_id": f"first-of-{card}", "card_id": card, "created_at": now}
        return {"key": card.encode(), "value": json.dumps(value).encode()}

    write_input(settings, (record(f"card-{number:06}") for number in range(1, cards + 1)))
