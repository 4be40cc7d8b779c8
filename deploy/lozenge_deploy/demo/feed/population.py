"""The population that the generator draws from: merchants, cards with habits, subscriptions, creatures of habit.

Its limits distinguish an injected case from ordinary traffic. All of them hold by construction:

- a card waits `COOLDOWN` between two purchases and has one subscription, so it is charged at most three times in
  any ten minutes;
- of three consecutive purchases of a card no two have the same amount, so no card pays one merchant the
  same amount twice within ten minutes;
- no ordinary amount reaches `CEILING`, a plain number in whatever currency, as the limits of a merchant
  category are (a card in Japan therefore only buys small things);
- all merchants of a country are in one city, and only those at home know where a card is;
- each card has its own device, and a shop that can be attacked sells nothing that is as cheap as an attack.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from lozenge.contracts.card_numbers import with_check_digit

SECOND = 1_000_000
DAY = 86_400 * SECOND
COOLDOWN = 301 * SECOND
CEILING = 200

_TRIES = 8
_FAVOURITES = 5
_HABIT = 0.8
_AT_HOME = 0.97


class Category(NamedTuple):
    """A kind of merchant; ordinary amounts lie in [low, high) major units, in steps of `step` (0: one cent)."""

    mcc: str
    channel: str
    low: int
    high: int
    step: int = 0


class CountryProfile(NamedTuple):
    """The home of merchants and cards; the numbers are ISO 3166-1 and ISO 4217, `share` is the share of the cards.

    `north` and `east` are the degrees of its city.
    """

    code: str
    number: str
    currency: str
    currency_number: str
    decimals: int
    share: int
    north: float
    east: float


class Merchant(NamedTuple):
    """A merchant and its terminals."""

    id: str
    category: Category
    country: CountryProfile
    terminals: tuple[str, ...]
    place: tuple[float, float]


SHOPS = (
    Category("5411", "pos", 4, 120),
    Category("5812", "pos", 9, 90),
    Category("5814", "pos", 3, 25),
    Category("5541", "pos", 15, 95),
    Category("5912", "pos", 4, 60),
    Category("4111", "pos", 3, 30),
    Category("5942", "ecom", 5, 70),
    Category("5651", "ecom", 10, 150),
    Category("5732", "ecom", 12, 180),
    Category("6011", "atm", 30, 180, step=10),
)
SERVICES = (
    Category("4899", "recurring", 6, 20),
    Category("4814", "recurring", 10, 45),
    Category("5968", "recurring", 5, 30),
    Category("7997", "recurring", 15, 60),
)
COUNTRIES = (
    CountryProfile("DE", "276", "EUR", "978", 2, 30, 52.52, 13.4),
    CountryProfile("FR", "250", "EUR", "978", 2, 20, 48.86, 2.35),
    CountryProfile("GB", "826", "GBP", "826", 2, 18, 51.51, -0.13),
    CountryProfile("US", "840", "USD", "840", 2, 14, 40.71, -74.01),
    CountryProfile("CH", "756", "CHF", "756", 2, 7, 46.95, 7.45),
    CountryProfile("SE", "752", "SEK", "752", 2, 6, 59.33, 18.07),
    CountryProfile("JP", "392", "JPY", "392", 0, 5, 35.68, 139.69),
)
LEAST_MERCHANTS = len(COUNTRIES) * (len(SHOPS) + len(SERVICES))
LEAST_CARDS = 10
REGULARS = 12
CHEAPEST_TARGET = 10
"""A shop that sells nothing for less, in major units, is one that an attack is seen at."""

_EARLY, _LATE, _NIGHT = range(3)
_AWAKE = (_NIGHT,) * 6 + (_EARLY,) * 10 + (_LATE,) * 8
"""Which group of cards is mostly active at each hour, UTC."""


@dataclass(slots=True)
class Card:
    """A card, its habits, and from when it may be used again (`available_at`, microseconds since 1970)."""

    pan: str
    account: str
    device: str
    home: CountryProfile
    favourites: tuple[Merchant, ...]
    spends: float
    available_at: int = 0
    purchases: int = 0


@dataclass(slots=True)
class Subscription:
    """A fixed price (minor units) every `period` microseconds; `equal` counts the charges at that price."""

    card: Card
    merchant: Merchant
    price: int
    period: int
    equal: int = 0

    def rise(self, random: Random) -> None:
        """From now on it costs 15 to 60 per cent more."""
        least = -(-self.price * 15 // 100)
        self.price += max(least, int(self.price * (0.15 + 0.45 * random.random())))
        self.equal = 0


class Regular(NamedTuple):
    """A card that only ever pays a few units at one merchant."""

    card: Card
    merchant: Merchant


class Population:
    """All cards and merchants; a pure function of the random source, so equal seeds give equal populations."""

    def __init__(self, random: Random, cards: int, merchants: int, seed: int) -> None:
        if cards < LEAST_CARDS or merchants < LEAST_MERCHANTS:
            raise ValueError(f"a population needs at least {LEAST_CARDS} cards and {LEAST_MERCHANTS} merchants")
        self._random = random
        self._seed = seed
        self._cards = 0
        self._homes = tuple(country for country in COUNTRIES for _ in range(country.share))
        self._shops: dict[str, list[Merchant]] = {country.code: [] for country in COUNTRIES}
        self._services: dict[str, list[Merchant]] = {country.code: [] for country in COUNTRIES}
        for number in range(merchants):
            self._open_merchant(number)
        self._everywhere = [shop for shops in self._shops.values() for shop in shops]
        self._about: tuple[list[Card], ...] = ([], [], [])
        self.subscriptions = [self._subscribe(self._join(number)) for number in range(cards)]
        self.regulars = [self._open_regular(number) for number in range(REGULARS)]

    def available_card(self, at: int) -> Card:
        """A card that may be used at time `at`, likely one that is usually active then.

        If the rate needs more cards than are available, a new card joins. Hence a steady live rate needs, and keeps,
        some 450 cards per record and second, less than half a kilobyte each.
        """
        random = self._random.random
        hour = at // (3600 * SECOND) % 24
        about = self._about[_AWAKE[hour] if random() < 0.7 else int(random() * 3)]
        for _ in range(_TRIES):
            card = about[int(random() * len(about))]
            if card.available_at <= at:
                return card
        card = self._open_card()
        about.append(card)
        return card

    def merchant_for(self, card: Card) -> Merchant:
        """Mostly a favourite, sometimes another shop at home, seldom one abroad."""
        random = self._random.random
        draw = random()
        if draw < _HABIT:
            return card.favourites[int(random() * _FAVOURITES)]
        shops = self._shops[card.home.code] if draw < _AT_HOME else self._everywhere
        return shops[int(random() * len(shops))]

    def anyone(self) -> Merchant:
        """Any shop of the population."""
        return self._everywhere[int(self._random.random() * len(self._everywhere))]

    def new_card(self) -> Card:
        """A card that has never been used, and that ordinary traffic does not use."""
        return self._open_card()

    def till(self, home: CountryProfile, *, abroad: bool = False) -> Merchant:
        """A shop that cards are held to a terminal in, in that country or in another one."""
        country = home
        while abroad and country is home:
            country = COUNTRIES[int(self._random.random() * len(COUNTRIES))]
        return self._shop(shop for shop in self._shops[country.code] if shop.category.channel == "pos")

    def target(self) -> Merchant:
        """An online shop that a thief tries out cards at."""
        online = (shop for shop in self._everywhere if shop.category.channel == "ecom")
        return self._shop(shop for shop in online if shop.category.low >= CHEAPEST_TARGET)

    def online_shop(self) -> Merchant:
        """Any online shop."""
        return self._shop(shop for shop in self._everywhere if shop.category.channel == "ecom")

    def amount(self, card: Card, merchant: Merchant) -> int:
        """The amount that the card spends there, in minor units; small amounts are frequent."""
        category = merchant.category
        unit = 10**merchant.country.decimals
        draw = self._random.random()
        amount = int((category.low + (category.high - category.low) * card.spends * draw * draw) * unit)
        step = category.step * unit or 1
        steps = amount // step
        # Consecutive purchases leave different remainders of three, hence three of them never cost the same.
        return (steps - (steps - card.purchases) % 3) * step

    def _open_merchant(self, number: int) -> None:
        round_, index = divmod(number, len(COUNTRIES))
        country = COUNTRIES[index]
        kinds = SHOPS + SERVICES
        category = kinds[round_ % len(kinds)]
        terminals = 1 + int(self._random.random() * 4) if category.channel == "pos" else 1
        names = tuple(f"t-{number * 4 + n:06d}" for n in range(terminals))
        side = self._services if category in SERVICES else self._shops
        # at most 17 km north or south and east or west of the middle of the city
        north, east = ((number * factor % 31 - 15) / 100 for factor in (7, 11))
        place = round(country.north + north, 4), round(country.east + east, 4)
        side[country.code].append(Merchant(f"m-{number:05d}", category, country, names, place))

    def _open_card(self) -> Card:
        random = self._random.random
        number = self._cards
        self._cards += 1
        home = self._homes[int(random() * len(self._homes))]
        shops = self._shops[home.code]
        return Card(
            # The factor shares no divisor with 10**10, so numbers look random and never repeat.
            pan=with_check_digit(f"400000{(number * 2_654_435_761 + self._seed * 1_000_003) % 10**9:09d}"),
            account=f"a-{number:06d}",
            device=f"d-{number:06d}",
            home=home,
            favourites=tuple(shops[int(random() * len(shops))] for _ in range(_FAVOURITES)),
            spends=0.4 + 0.6 * random(),
        )

    def _join(self, number: int) -> Card:
        card = self._open_card()
        about = self._about[(_EARLY, _EARLY, _LATE, _LATE, _NIGHT)[number % 5]]
        about.extend([card] * (1 + int(self._random.random() * 4)))
        return card

    def _open_regular(self, number: int) -> Regular:
        card = self._open_card()
        card.home = COUNTRIES[number % (len(COUNTRIES) - 1)]  # not in Japan, where a few units are one coin
        return Regular(card, self.till(card.home))

    def _shop(self, shops: Iterable[Merchant]) -> Merchant:
        among = list(shops)
        return among[int(self._random.random() * len(among))]

    def _subscribe(self, card: Card) -> Subscription:
        random = self._random.random
        services = self._services[card.home.code]
        service = services[int(random() * len(services))]
        low, high = service.category.low, service.category.high
        price = int((low + (high - low) * random()) * 10**card.home.decimals)
        return Subscription(card, service, price, period=int((29 + random()) * DAY))
