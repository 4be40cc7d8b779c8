"""Authorisations as they are made at a merchant: numbered, with the terminal, device and place that belong to it."""

from random import Random

from lozenge_deploy.demo.feed.formats import Authorisation
from lozenge_deploy.demo.feed.population import COOLDOWN, Card, Merchant, Population
from lozenge_deploy.demo.feed.written_records import WrittenRecords


class Charges:
    """Makes the authorisations of a run."""

    def __init__(self, random: Random, population: Population, written: WrittenRecords) -> None:
        self._random, self._population, self._written = random, population, written

    def usual(self, card: Card, at: int) -> Authorisation:
        """What the card usually does: a purchase that its owner would make."""
        merchant = self._population.merchant_for(card)
        return self.at(merchant, card, at, self._population.amount(card, merchant))

    def at(self, merchant: Merchant, card: Card, at: int, minor: int) -> Authorisation:
        """A purchase at this merchant."""
        terminals = merchant.terminals
        terminal = terminals[int(self._random.random() * len(terminals))]
        card.purchases += 1
        card.available_at = at + COOLDOWN
        online = merchant.category.channel == "ecom"
        # a terminal abroad does not say where it is
        known = not online and merchant.country is card.home
        return Authorisation(
            self._written.next_number(),
            at,
            card,
            merchant,
            terminal,
            minor,
            device=card.device if online else "",
            place=merchant.place if known else None,
        )
