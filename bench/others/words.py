"""Words, names and formats that the tables are made of."""

from __future__ import annotations

from typing import Final

WORDS: Final = (
    *("adaptive", "analysis", "analyses", "applied", "approach", "approaches", "architecture"),
    *("atmospheric", "attention", "automated", "bacterial", "bayesian", "behaviour", "benchmark"),
    *("bounded", "cancer", "carbon", "catalysis", "cellular", "chemical", "classes", "climate"),
    *("clinical", "clustering", "coastal", "cognitive", "comparing", "complexity", "computing"),
    *("control", "coupled", "crystal", "data", "databases", "deep", "defined", "detecting"),
    *("detection", "devices", "diffusion", "distributed", "distribution", "dynamics", "early"),
    *("economic", "efficient", "electron", "embedded", "emissions", "energy", "engineering"),
    *("engines", "environmental", "epidemics", "estimated", "estimating", "evaluating", "evidence"),
    *("evolution", "exploring", "fields", "financial", "flexible", "flows", "forests", "formation"),
    *("framework", "functional", "functions", "galaxies", "generated", "genes", "genetic"),
    *("genome", "geometry", "global", "graphs", "growth", "health", "heterogeneous", "historical"),
    *("human", "hybrid", "hydrogen", "imaging", "immune", "improved", "inference", "infections"),
    *("influence", "integrated", "interactions", "interfaces", "isotopes", "joins", "kinetics"),
    *("knowledge", "language", "large", "lasers", "learning", "lipid", "liquid", "local", "long"),
    *("machine", "magnetic", "mapping", "marine", "markets", "materials", "measured", "measuring"),
    *("mechanisms", "medical", "membranes", "memory", "metabolic", "methods", "migration"),
    *("mining", "minimal", "mobile", "modelling", "models", "molecular", "monitoring", "motion"),
    *("multiple", "nanoparticles", "networks", "neural", "neurons", "noise", "nonlinear", "novel"),
    *("nuclear", "observed", "ocean", "optical", "optimization", "organic", "oxidation"),
    *("parallel", "particles", "patients", "patterns", "perception", "performance", "phase"),
    *("photonic", "planning", "plants", "plasma", "policies", "polymers", "population"),
    *("precision", "predicted", "predicting", "prediction", "pressure", "probabilistic"),
    *("processes", "processing", "production", "properties", "proteins", "quantum", "queries"),
    *("random", "rapid", "reactions", "regional", "relational", "reliable", "remote"),
    *("representation", "resilience", "resistance", "retrieval", "risk", "river", "robust"),
    *("scalable", "scattering", "seasonal", "security", "semantic", "sensing", "sensors"),
    *("sequences", "signals", "simulated", "simulations", "social", "software", "soil", "solar"),
    *("spatial", "species", "spectral", "stability", "statistical", "stochastic", "storage"),
    *("streams", "stress", "structural", "structures", "studies", "surface", "sustainable"),
    *("symmetry", "synthesis", "systems", "temperature", "temporal", "testing", "theory"),
    *("thermal", "tissue", "topology", "transfer", "transition", "transport", "treatment"),
    *("tropical", "turbulence", "uncertainty", "urban", "variability", "vascular", "vehicles"),
    *("viral", "vision", "water", "wave", "wireless"),
)
"""Of titles and abstracts, the first ones often."""

LITTLE_WORDS: Final = (
    *("a", "the", "of", "in", "on", "for", "with", "and", "to", "by", "from", "at", "an", "as"),
    *("is", "are", "we", "our", "this", "that"),
)
"""Those between them, and the stop words of the functions."""

SURNAMES: Final = (
    *("Smith", "Schmidt", "Schmitt", "Jones", "Johansson", "Jonson", "Nguyen", "Garcia", "Rossi"),
    *("Russo", "Müller", "Muller", "Meyer", "Meier", "Novak", "Nowak", "Kowalski", "Papadopoulos"),
    *("Ioannidis", "Tanaka", "Suzuki", "Sato", "Kim", "Lee", "Li", "Wang", "Zhang", "Chen"),
    *("Singh", "Patel", "Kumar", "Silva", "Santos", "Oliveira", "Dubois", "Dupont", "Martin"),
    *("Bernard", "Petrov", "Ivanov", "Popov", "Andersen", "Hansen", "Nielsen", "Larsen"),
    *("Virtanen", "Korhonen", "Murphy", "O'Brien", "Kelly", "Walsh", "Brown", "Taylor", "Wilson"),
    *("Thompson", "Thomson", "Clark", "Fischer", "Weber", "Wagner", "Becker", "Hoffmann"),
)
GIVEN_NAMES: Final = (
    *("Anna", "Maria", "Elena", "Sofia", "Laura", "Julia", "Ingrid", "Yuki", "Mei", "Priya"),
    *("Fatima", "Olga", "Chloé", "Zoë", "Alice", "Emma", "Nora", "Ioanna", "Katarina", "Ada"),
    *("John", "Peter", "Paul", "Marco", "Luca", "Hans", "Erik", "Lars", "Kenji", "Wei", "Raj"),
    *("Omar", "Ivan", "Pierre", "José", "Miguel", "Tom", "Jack", "Liam", "Noah", "Max", "Felix"),
    *("Yannis", "Niko", "Jan", "Piotr", "Daniel", "Samuel", "Leo", "Alan"),
)

TOPICS: Final = (
    *("databases", "biology", "physics", "chemistry", "climate", "oceans", "health", "cancer"),
    *("neuroscience", "energy", "materials", "economics", "linguistics", "robotics", "vision"),
    *("networks", "security", "astronomy", "geology", "agriculture", "education", "mathematics"),
    "history",
)
"""Of publications: a prime number of them."""

FUNDERS: Final = (
    ("ec", "h2020"),
    ("ec", "fp7"),
    ("ec", "erc"),
    ("nsf", "dms"),
    ("nsf", "cise"),
    ("nih", "r01"),
    ("ukri", "epsrc"),
    ("ukri", "nerc"),
    ("snsf", "div2"),
    ("dfg", "gz"),
)
"""Who gives money, and in which programme."""

DATE_FORMATS: Final = ("%Y-%m-%d", "%d/%m/%Y", "%d.%m.%Y", "%b %d, %Y", "%d %B %Y", "%Y%m%d", "%Y")
"""In which dates are written."""

COUNTRIES: Final = (
    *("DE", "FR", "GB", "US", "IT", "ES", "PL", "GR", "NL", "SE", "FI", "DK", "PT", "AT", "CH"),
    *("IE", "JP", "IN", "BR", "CA"),
)

COLOURS: Final = (
    *("red", "blue", "green", "black", "white", "yellow", "grey", "oak", "silver", "copper"),
)
MATERIALS: Final = (
    *("ceramic", "wooden", "steel", "glass", "cotton", "leather", "paper", "plastic", "bamboo"),
)
THINGS: Final = (
    *("lamp", "chair", "table", "bowl", "kettle", "shelf", "mug", "basket", "clock", "mirror"),
    *("rug", "vase"),
)

NOTES: Final = (
    "please leave at the door",
    "Arrived late, second time!",
    "delivery was delayed by a week",
    "gift wrap please",
    "call before delivery +49 170 5551234",
    "wrong colour, want a refund",
    "Thanks!",
    "DELAYED again",
    "box damaged but lamp fine",
    "",
)
"""Of customers to their orders."""

BOTS: Final = (
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "curl/7.88.1",
    "python-requests/2.31.0",
    "Scrapy/2.9.0 (+https://scrapy.org)",
)
"""User agents that are programs."""

SYSTEMS: Final = (
    "Windows NT 10.0; Win64; x64",
    "Macintosh; Intel Mac OS X 10_15_7",
    "X11; Linux x86_64",
    "Linux; Android 13; SM-S901B",
    "iPhone; CPU iPhone OS 16_5 like Mac OS X",
)
"""Of which browsers tell."""
