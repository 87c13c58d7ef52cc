"""Names and words that the tables are made of."""

from __future__ import annotations

from typing import Final

FIRST_NAMES: Final = (
    *("Anna", "Ben", "Chloé", "David", "Élise", "Felix", "Grace", "Hugo", "Ines", "Jonas"),
    *("Klara", "Liam", "Maja", "Noah", "Olivia", "Paul", "Quinn", "Rosa", "Søren", "Theo"),
)
LAST_NAMES: Final = (
    *("Müller", "Schmidt", "Dupont", "Martin", "Smith", "Jones", "Gruber", "Huber", "Rossi"),
    *("van Dyk", "de Vries", "von Arnim", "Novák", "Kowalski", "O'Neill", "Brown", "Leroy"),
    *("Fischer", "Weber", "Wagner", "Taylor", "Wilson", "Bernard", "Petit", "Moreau", "Pichler"),
)
THINGS: Final = (
    *("wireless", "garden", "steel", "kitchen", "travel", "wooden", "mini", "outdoor", "smart"),
    *("lamp", "chair", "bottle", "headset", "table", "knife", "bag", "charger", "speaker"),
    *("set", "kit", "pro", "plus", "black", "white", "xl", "2.0", "café", "déco", "light"),
)
TRADES: Final = (
    *("Nord", "Alpen", "Delta", "Orion", "Baltic", "Rhein", "Atlas", "Fuchs", "Sonnen", "Kern"),
    *("Metall", "Holz", "Technik", "Logistik", "Textil", "Glass", "Foods", "Print", "Energy"),
    *("Systems", "Trading", "Works", "Partner", "Service", "Group", "Design", "Supply", "Labs"),
)
FORMS: Final = ("GmbH", "AG", "Inc.", "Ltd", "LLC", "GmbH & Co. KG", "Limited", "Corp.")
COUNTRIES: Final = (
    *("Germany", "DE", "Deutschland", "germany ", "France", "FR", "frankreich", "UK", "GB"),
    *("United Kingdom", "USA", "us", "United States", "Austria", "Österreich", "AT", "n/a"),
)
HOSTS: Final = ("gmail.com", "GMX.net", "example.org", "mail.example.com", "Yahoo.com", "web.de")
SITES: Final = (
    *("https://www.shop.example", "https://shop.example", "http://m.shop.example"),
    *("https://www.search.example", "https://news.example", "https://social.example"),
)
SECTIONS: Final = ("", "products", "products", "products", "cart", "help", "blog", "account")
CAMPAIGNS: Final = ("spring", "summer-sale", "newsletter", "retarget", "brand", "partner")
SYSTEMS: Final = (
    *("Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64"),
    *("iPhone; CPU iPhone OS 17_4 like Mac OS X", "Linux; Android 14; SM-G991B", "iPad; OS 16_6"),
)
ROBOTS: Final = ("Googlebot/2.1", "bingbot/2.0", "curl/8.4.0", "python-requests/2.31", "AhrefsBot")
SENTENCES: Final = (
    *("my parcel is late", "the lamp arrived broken", "thanks for the good service"),
    *("please send a refund", "I never got an invoice", "great product, love it"),
    *("the card payment failed", "I cannot log in with my password", "wrong size was delivered"),
    *("where is my order", "I am angry about the delay", "how do I change my account"),
)
SUBJECTS: Final = (
    *("Parcel not delivered", "Late delivery!!", "Invoice missing", "Refund for order", "Login"),
    *("Password reset", "Card declined", "Question", "Broken item", "Feedback", "Shipping costs"),
)
