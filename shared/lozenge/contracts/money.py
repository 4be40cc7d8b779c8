"""Currencies of ISO 4217: codes, minor units, and an amount of money as a person writes it.

The table holds what a payment can be made in: no metals, bond units or test codes. Codes withdrawn
since 2021 are kept, because history is replayed; 532 means XCG, which took it over from ANG.
"""

from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

_BY_MINOR_DIGITS = {
    0: """
    BIF108 CLP152 DJF262 GNF324 ISK352 JPY392 KMF174 KRW410 PYG600 RWF646 UGX800 UYI940 VND704 VUV548
    XAF950 XOF952 XPF953
    """,
    2: """
    AED784 AFN971 ALL008 AMD051 ANG532 AOA973 ARS032 AUD036 AWG533 AZN944 BAM977 BBD052 BDT050 BGN975
    BMD060 BND096 BOB068 BOV984 BRL986 BSD044 BTN064 BWP072 BYN933 BZD084 CAD124 CDF976 CHE947 CHF756
    CHW948 CNY156 COP170 COU970 CRC188 CUC931 CUP192 CVE132 CZK203 DKK208 DOP214 DZD012 EGP818 ERN232
    ETB230 EUR978 FJD242 FKP238 GBP826 GEL981 GHS936 GIP292 GMD270 GTQ320 GYD328 HKD344 HNL340 HRK191
    HTG332 HUF348 IDR360 ILS376 INR356 IRR364 JMD388 KES404 KGS417 KHR116 KPW408 KYD136 KZT398 LAK418
    LBP422 LKR144 LRD430 LSL426 MAD504 MDL498 MGA969 MKD807 MMK104 MNT496 MOP446 MRU929 MUR480 MVR462
    MWK454 MXN484 MXV979 MYR458 MZN943 NAD516 NGN566 NIO558 NOK578 NPR524 NZD554 PAB590 PEN604 PGK598
    PHP608 PKR586 PLN985 QAR634 RON946 RSD941 RUB643 SAR682 SBD090 SCR690 SDG938 SEK752 SGD702 SHP654
    SLE925 SLL694 SOS706 SRD968 SSP728 STN930 SVC222 SYP760 SZL748 THB764 TJS972 TMT934 TOP776 TRY949
    TTD780 TWD901 TZS834 UAH980 USD840 USN997 UYU858 UZS860 VED926 VES928 WST882 XCD951 XCG532 YER886
    ZAR710 ZMW967 ZWG924 ZWL932
    """,
    3: """
    BHD048 IQD368 JOD400 KWD414 LYD434 OMR512 TND788
    """,
    4: """
    CLF990 UYW927
    """,
}
"""Alphabetic and numeric code of every currency, by the number of its minor digits."""

MINOR_DIGITS = {code[:3]: digits for digits, codes in _BY_MINOR_DIGITS.items() for code in codes.split()}
"""Digits after the decimal point, by alphabetic code: EUR 2, JPY 0, KWD 3."""

ALPHABETIC = {code[3:]: code[:3] for codes in _BY_MINOR_DIGITS.values() for code in codes.split()}
"""Alphabetic code by the three-digit numeric one: "978" -> EUR."""

_DEFAULT_DIGITS = 2


def minor_digits(currency: str) -> int:
    """Digits after the decimal point of `currency` (alphabetic); raises KeyError for an unknown one."""
    return MINOR_DIGITS[currency]


def minor_digits_column(currency: "Column") -> "Column":
    """`minor_digits` as a Spark expression; null for an unknown currency."""
    from pyspark.sql import functions as F

    digits = F.lit(None).cast("int")
    for count in sorted(_BY_MINOR_DIGITS):
        # isin becomes one hash look-up however long the list; a map literal would be searched in order
        digits = F.when(currency.isin([c for c, n in MINOR_DIGITS.items() if n == count]), count).otherwise(digits)
    return digits


def money(amount: Decimal, currency: str) -> str:
    """`12.50 EUR`, `1200 JPY`: rounded half up to the currency's digits, two if it is unknown."""
    digits = MINOR_DIGITS.get(currency, _DEFAULT_DIGITS)
    rounded = amount.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) + 0  # so that -0 is 0
    return f"{rounded:f} {currency}"


def money_column(amount: "Column", currency: "Column") -> "Column":
    """`money` as a Spark expression over a decimal and an alphabetic code; null if either is."""
    from pyspark.sql import functions as F

    text = amount.cast(f"decimal(38,{_DEFAULT_DIGITS})").cast("string")
    for count in _BY_MINOR_DIGITS.keys() - {_DEFAULT_DIGITS}:
        codes = [c for c, n in MINOR_DIGITS.items() if n == count]
        text = F.when(currency.isin(codes), amount.cast(f"decimal(38,{count})").cast("string")).otherwise(text)
    return F.concat(text, F.lit(" "), currency)
