"""What guests and the concierge of Lindemar, an invented city, talk about and how they put it.

Tables only; `dialoscope.corpus.generate` turns them into dialogues. Every line was written for this corpus. In phrases:

- ``{slot}`` is a value that the labels mention, so that text and labels come from one place and cannot disagree;
- ``<part>`` is filled too but has no label;
- ``[one|other|]`` is a choice of wordings, the last of which says nothing.

Values stand in order of popularity: the first are drawn most often, as words are in any language. A key such as
``room.day`` holds for one domain, ``day`` for all the others.
"""

from __future__ import annotations

from typing import NamedTuple

Phrases = tuple[str, ...]


class Domain(NamedTuple):
    """One topic: slots that choose a venue, slots that complete a booking, and what guests may ask about the venue."""

    search: Phrases
    book: Phrases
    details: Phrases
    venues: int  # how many of them the city has
    names: Phrases = ()


DOMAINS = {
    "restaurant": Domain(
        ("food", "area", "price"),
        ("day", "time", "people"),
        ("street", "dish", "closes", "chef"),
        150,
        ("The <adjective> <noun>", "<first>'s Kitchen", "<noun> and <noun>", "Chez <first>", "The <surname> Arms"),
    ),
    "taxi": Domain((), ("departure", "destination", "day", "time", "people"), (), 0),
    "museum": Domain(
        ("collection", "area"),
        ("day", "people"),
        ("street", "exhibit", "fee", "closes"),
        60,
        ("The <surname> Museum", "The <surname> Collection", "<surname> House", "The <adjective> <noun> Gallery"),
    ),
    "concert": Domain(
        ("music", "area"),
        ("day", "people", "seats"),
        ("hall", "starts", "fee"),
        80,
        (
            "The <adjective> <noun> Ensemble",
            "The <surname> Quartet",
            "<first> <surname>",
            "<first> and the <noun> Band",
        ),
    ),
    "room": Domain(
        ("area", "price", "view"),
        ("day", "nights", "people"),
        ("street", "breakfast", "rate"),
        100,
        ("Hotel <surname>", "The <noun> Inn", "The <adjective> <noun> Guesthouse", "<surname> Court", "Villa <first>"),
    ),
    "tour": Domain(
        ("theme", "language"),
        ("day", "time", "people"),
        ("guide", "meeting", "length", "fee"),
        70,
        ("The <noun> Walk", "Footsteps of <first> <surname>", "The <adjective> Lantern Tour", "<adjective> Lindemar"),
    ),
    "spa": Domain(
        ("treatment", "area", "price"),
        ("day", "time"),
        ("street", "therapist", "rate"),
        80,
        ("<adjective> Waters", "The <noun> Baths", "<first>'s Retreat", "The <adjective> Spring"),
    ),
    "bike": Domain(
        ("kind", "area"),
        ("day", "duration", "people"),
        ("street", "deposit", "closes"),
        45,
        ("<first>'s Wheels", "<noun> Cycles", "The <adjective> Pedal", "<surname> and Daughters"),
    ),
}

# --- Values -----------------------------------------------------------------------------------------------------------

DISHES = {
    "Italian": ("mushroom risotto", "saffron gnocchi", "braised rabbit", "lemon tiramisu"),
    "Indian": ("spinach paneer", "tandoori trout", "tamarind lentils", "cardamom rice pudding"),
    "Basque": ("salt cod", "stuffed peppers", "charred squid", "burnt cheesecake"),
    "Japanese": ("grilled mackerel", "buckwheat noodles", "vegetable tempura", "sesame dumplings"),
    "vegetarian": ("walnut ravioli", "roast cauliflower", "beetroot tartare", "chestnut stew"),
    "Lebanese": ("smoky aubergine", "lamb kofta", "parsley salad", "pistachio pastries"),
    "Mexican": ("pork tacos", "chocolate mole", "cactus salad", "corn fritters"),
    "Greek": ("grilled octopus", "lamb with oregano", "feta pie", "honey doughnuts"),
    "Korean": ("fermented cabbage", "barbecued short ribs", "seafood pancake", "hot stone rice"),
    "Ethiopian": ("sour flatbread", "berbere chicken", "yellow split peas", "roasted coffee"),
    "Peruvian": ("lime ceviche", "purple potatoes", "quinoa soup", "grilled corn"),
    "Georgian": ("cheese bread", "walnut chicken", "plum sauce", "soup dumplings"),
    "Alpine": ("cheese fondue", "venison stew", "potato rösti", "juniper sausage"),
    "Nordic": ("pickled herring", "smoked eel", "rye porridge", "cloudberry cream"),
    "Moroccan": ("apricot tagine", "couscous with raisins", "orange blossom cake", "mint tea"),
    "Vietnamese": ("beef noodle soup", "lotus salad", "caramel pork", "rice paper rolls"),
}
EXHIBITS = {
    "art": ("the portraits of fishermen", "the watercolours", "the marble busts", "the painted ceiling"),
    "maritime": ("the model ships", "the lighthouse lamp", "the diving bells", "the smuggler's boat"),
    "science": ("the giant pendulum", "the early telescopes", "the plasma globe", "the walk-in heart"),
    "history": ("the Roman coins", "the city charter", "the medieval kitchen", "the suit of armour"),
    "design": ("the folding chairs", "the tram posters", "the enamel teapots", "the lamp workshop"),
    "toy": ("the clockwork bears", "the doll's palace", "the tin soldiers", "the marble run"),
    "glass": ("the blowing demonstration", "the crystal chandelier", "the perfume bottles", "the stained windows"),
    "railway": ("the royal carriage", "the steam engines", "the signal box", "the miniature line"),
    "photography": ("the glass negatives", "the darkroom", "the street scenes", "the walk-in camera"),
    "textile": ("the woven tapestries", "the silk kimonos", "the working loom", "the embroidered shoes"),
    "clock": ("the astronomical clock", "the pocket watches", "the giant hourglass", "the cuckoo clocks"),
    "puppet": ("the shadow figures", "the marionettes", "the dragon stage", "the ventriloquist dummies"),
}
RATES = {
    "cheap": ("25 crowns", "30 crowns", "35 crowns", "40 crowns"),
    "mid-range": ("60 crowns", "70 crowns", "85 crowns", "90 crowns"),
    "upscale": ("140 crowns", "160 crowns", "200 crowns", "250 crowns"),
}

# Details that must fit what the venue is.
PER_KIND = {"dish": ("food", DISHES), "exhibit": ("collection", EXHIBITS), "rate": ("price", RATES)}

AREAS = (
    "old town",
    "harbour district",
    "riverside quarter",
    "university quarter",
    "garden district",
    "lantern quarter",
    "weavers' quarter",
    "station quarter",
    "northern suburbs",
)
EVENINGS = ("19:30", "19:00", "20:00", "18:30", "20:30", "18:00", "12:30", "13:00", "21:00", "13:30", "12:00", "21:30")
DAYTIMES = ("10:00", "11:00", "14:00", "9:30", "15:30", "10:30", "16:00", "9:00", "14:30", "12:00", "17:15", "13:45")
CLOCK = tuple(f"{hour}:{minute:02}" for hour in range(7, 23) for minute in (0, 15, 30, 45))

# Where a cab may go besides the venues of the dialogue.
PLACES = (
    *("the central station", "the airport", "the ferry terminal", "the opera house", "the castle gate"),
    *("the botanical garden", "the fish market", "the university library", "the town hall", "the lighthouse"),
    *("the concert hall", "the old mill", "the congress centre", "the north pier", "the bus station"),
    *("the cathedral", "the observatory", "the children's hospital", "the football stadium", "the silk exchange"),
)

VALUES: dict[str, Phrases] = {
    "food": tuple(DISHES),
    "collection": tuple(EXHIBITS),
    "area": AREAS,
    "price": ("mid-range", "cheap", "upscale"),
    "day": ("Saturday", "Friday", "Sunday", "Thursday", "Monday", "Wednesday", "Tuesday"),
    "time": DAYTIMES,
    "restaurant.time": EVENINGS,
    "people": ("two", "four", "three", "six", "five", "eight", "seven", "ten"),
    "music": (
        *("jazz", "folk", "piano", "chamber", "blues", "choral", "baroque", "soul"),
        *("tango", "gospel", "brass", "flamenco", "swing", "organ"),
    ),
    "seats": ("stalls", "balcony", "front row", "gallery", "side boxes"),
    "view": ("river", "garden", "sea", "courtyard", "castle", "harbour"),
    "nights": ("two nights", "three nights", "one night", "four nights", "five nights", "six nights", "ten nights"),
    "theme": (
        *("architecture", "ghost", "food", "street art", "canal", "literary"),
        *("sculpture", "brewery", "garden", "film", "bridge", "legends"),
    ),
    "language": ("English", "French", "German", "Spanish", "Italian", "Polish", "Dutch", "Japanese", "Portuguese"),
    "treatment": (
        *("hot stone massage", "facial", "back massage", "mud bath", "salt scrub"),
        *("seaweed wrap", "foot massage", "steam bath", "honey peel"),
    ),
    "kind": ("city", "electric", "mountain", "tandem", "folding", "cargo", "racing"),
    "duration": (
        "half a day",
        "the whole day",
        "two hours",
        "three hours",
        "the afternoon",
        "the morning",
        "four hours",
    ),
    "departure": PLACES,
    "destination": PLACES,
    "closes": ("22:00", "18:00", "23:30", "17:30", "21:00", "midnight", "19:00", "20:30"),
    "starts": ("20:00", "19:30", "20:30", "18:00", "21:15", "17:00"),
    "fee": tuple(f"{crowns} crowns" for crowns in (12, 20, 15, 8, 10, 25, 18, 9, 30, 14)),
    "deposit": tuple(f"{crowns} crowns" for crowns in (50, 100, 40, 80, 150, 25)),
    "length": ("two hours", "ninety minutes", "three hours", "an hour", "half a day", "two and a half hours"),
    "breakfast": (
        *("a buffet breakfast", "a continental breakfast", "porridge and fruit", "fresh rolls and jam"),
        *("an English breakfast", "pancakes", "a breakfast basket"),
    ),
}
# Details that are composed from parts.
COMPOSED = {
    "street": "<street> <way>",
    "hall": "<street> Hall",
    "meeting": "<street> Fountain",
    "guide": "<first> <surname>",
    "therapist": "<first> <surname>",
    "chef": "<first> <surname>",
    "driver": "<first>",
    "car": "<colour> <car>",
    "code": "<bird> <number>",
}

# --- Parts of names and of lives --------------------------------------------------------------------------------------


def _words(text: str) -> Phrases:
    return tuple(word.replace("_", " ") for word in text.split())


PARTS: dict[str, Phrases] = {
    "adjective": _words(
        """Copper Velvet Quiet Crooked Golden Laughing Amber Hidden Silver Wandering Crimson Gentle Hollow Ivory Merry
        Northern Painted Rusty Salted Sleeping Slow Smiling Solemn Thirsty Timber Topaz Tumbling Twilight Undaunted
        Verdant Violet Whispering Wooden Winter Bashful Borrowed Brass Candid Curious Dancing Drowsy Dusky Emerald
        Faithful Feathered Floating Frosted Gilded Hasty Humble Indigo Jaded Jolly Lonesome Lucky Marbled Mellow
        Midnight Misty Modest Mossy Nimble Patient Pearl Polite Proud Restless Roving Scarlet Secret Shy Singing"""
    ),
    "noun": _words(
        """Heron Lantern Thistle Otter Anchor Fennel Kettle Magpie Orchard Quill Raven Saffron Sparrow Tide Acorn Badger
        Barley Beacon Bramble Buttercup Cedar Chestnut Cinnamon Clover Compass Cricket Dolphin Falcon Feather Fig Finch
        Foxglove Gander Ginger Goose Harvest Hazel Hedgehog Hornbeam Ivy Juniper Kingfisher Lark Laurel Lemon Lilac
        Linden Lobster Mariner Marten Mulberry Nettle Nutmeg Olive Oyster Parsley Partridge Peacock Pelican Pepper
        Pheasant Pigeon Plover Poppy Quince Rook Rosemary Rudder Sage Salmon Sickle Sorrel Squirrel Starling Swan
        Tansy Teasel Trout Tulip Turnip Vine Walnut Whistle Willow Wren Yarrow"""
    ),
    "first": _words(
        """Ada Milo Ines Otto Freya Hugo Nadia Tomas Clara Jonas Leila Felix Greta Oscar Mina Rafael Elsa Bruno Vera
        Anton Lucia Emil Zora Simon Petra Noah Selma Victor Ida Hassan Rosa Marek Yuki Conrad Dalia Edgar Fiona Gideon
        Hanna Igor Joanna Kofi Lena Magnus Nora Olaf Paula Quentin Rita Stefan Tessa Umar Vivian Walter Xenia Yusuf
        Agnes Basil Cosima Dario Edith Florian Gloria Henrik Irma Jasper Kira Lorenz Matilda Nestor Odette Pascal
        Rufus Sybil Theo Ursula Viggo Wanda Amira Benno Carmen Dimitri Esther Farid Gwen Hilda Ivo Judith Klara"""
    ),
    "surname": _words(
        """Halloran Brandt Castellan Dunmore Eskildsen Farrow Grimaldi Hartwell Iversen Jankowski Kestner Lindqvist
        Marchetti Norwood Okafor Pemberton Quarles Rosenthal Sandoval Thackeray Underhill Valente Wexford Yardley
        Zeller Abernathy Bellamy Corrigan Delacroix Ellery Fairbanks Galloway Hawksmoor Ingram Jessup Kowalska Lockhart
        Montague Nakamura Oduya Pendleton Quimby Ravenhill Stavros Tremaine Ulrich Varga Whitlock Yamada Zimmer
        Ashdown Bexley Cranmer Dufour Everard Fontaine Greaves Holloway Jarvis Keating Lascelles Merriweather"""
    ),
    "street": _words(
        """Tallow Cooper Mercer Fletcher Candlemaker Cobbler Saddler Baker Chandler Glover Mason Potter Ropemaker Tanner
        Weaver Wheelwright Abbey Bell Bishop Canal Chapel Cloister Crescent Cross Elm Ferry Foundry Granary Guild
        Herring King's Lime Market Meadow Mill Minster Mint Monk Orange Paper Pilgrim Plum Prince Queen's Rampart Rope
        Salt Shepherd Silk Smith Station Swan Temple Tower Vineyard Wall Water Well Windmill Wool"""
    ),
    "way": _words("Street Lane Road Street Avenue Row Quay Hill"),
    "colour": _words("grey white dark_blue black silver red green yellow maroon cream"),
    "car": _words("saloon estate_car van minibus electric_car hatchback limousine"),
    "bird": _words(
        """HERON KESTREL MAGPIE OSPREY PLOVER ROBIN SWALLOW TEAL WAGTAIL AVOCET BITTERN CURLEW DUNLIN EIDER FULMAR
        GANNET HARRIER IBIS JACKDAW LINNET MERLIN NUTHATCH ORIOLE PETREL QUAIL REDWING SISKIN TERN WIGEON WHIMBREL"""
    ),
    "number": tuple(map(str, range(10, 100))),
    "job": _words(
        """teacher nurse carpenter beekeeper translator dentist baker gardener librarian locksmith architect plumber
        pharmacist florist accountant cartographer tailor geologist midwife violin_maker electrician notary sailor
        paramedic chemist sculptor judge blacksmith proofreader shepherd surveyor optician bookbinder firefighter
        programmer veterinarian tram_driver glazier puppeteer lighthouse_keeper upholsterer statistician stonemason
        physiotherapist conductor illustrator welder typesetter meteorologist clockmaker"""
    ),
    "town": _words(
        """Dunmere Aldersby Port_Callow Brackenford Estermouth Greyhaven Halvik Ivelstone Kirkwater Lower_Tamsin
        Marrowdale Northolme Osterfeld Pinecroft Quarry_Bay Ravensund Saint_Odo Thornwick Upper_Lisle Vantry Westerlo
        Yarmstead Zellbach Ambleford Birchanger Coldharbour Drayholt Elmswick Fernhollow Gorsebank"""
    ),
    "animal": _words(
        """dog cat parrot tortoise rabbit horse hamster ferret donkey goat canary greyhound hedgehog llama gecko
        terrier poodle goose pony spaniel"""
    ),
    "hobby": _words(
        """birdwatching pottery knitting chess astronomy photography gardening calligraphy woodcarving crosswords
        origami baking sketching genealogy juggling stargazing beekeeping embroidery geocaching model_railways
        bookbinding magic_tricks mushroom_picking kite_flying brewing"""
    ),
    "sport": _words(
        """swimming running climbing rowing fencing judo sailing tennis cycling skating archery badminton hiking
        surfing handball table_tennis curling weightlifting orienteering yoga"""
    ),
    "instrument": _words(
        """piano guitar cello violin accordion trumpet flute clarinet banjo harp drums oboe trombone ukulele bagpipes
        mandolin saxophone double_bass viola tuba"""
    ),
    "collectible": _words(
        """stamps teapots old_maps postcards vinyl_records thimbles fossils coins snow_globes matchboxes
        detective_novels typewriters seashells theatre_programmes cookbooks buttons fountain_pens comics keys
        railway_tickets"""
    ),
    "dislike": _words(
        """heights crowds thunderstorms spiders loud_music long_queues raw_onions lifts cold_weather early_mornings
        pigeons coriander stairs tunnels seagulls olives boats mushrooms"""
    ),
    "occasion": (
        "my parents' golden wedding",
        "a conference on bridges",
        "my cousin's wedding",
        "my sixtieth birthday",
        "a long weekend",
        "a school reunion",
        "the film festival",
        "research for a novel",
        "the spring marathon",
        "a job interview",
        "my daughter's graduation",
        "a chess tournament",
        "the lantern festival",
        "the book fair",
        "a choir exchange",
        "an aunt's ninetieth birthday",
        "the trade fair",
        "a sailing regatta",
    ),
    "food": VALUES["food"],
    "music": VALUES["music"],
    "language": ("Italian", "Finnish", "Arabic", "Welsh", "Mandarin", "Greek", "Swahili", "Hungarian", "Icelandic"),
}

COMPANY: dict[str, Phrases] = {
    "two": (
        "my husband",
        "my wife",
        "my sister",
        "my oldest friend",
        "my mother",
        "my daughter",
        "my brother",
        "a cousin",
    ),
    "three": ("my two sons", "my parents", "two friends", "my wife and our baby", "my two aunts", "my twin daughters"),
    "four": (
        "my wife and our two children",
        "three friends from school",
        "three colleagues",
        "my husband and the twins",
    ),
    "five": ("four colleagues", "my parents and my two brothers", "the rest of my quintet", "four neighbours"),
    "six": ("five members of my rowing club", "five old classmates", "my husband and our four children"),
    "seven": ("six cousins", "six students of mine", "my whole family"),
    "eight": ("seven friends from my choir", "my in-laws", "seven people from the office"),
    "ten": ("nine pensioners from my village", "my football team"),
}


class Fact(NamedTuple):
    """Something about a guest: what it is made of, how the persona states it, how small talk lets it show."""

    pattern: str
    persona: Phrases
    chat: Phrases
    reply: Phrases


FACTS: dict[str, Fact] = {
    "company": Fact(
        "",  # drawn from COMPANY, which also says how many people there are
        ("I am here with <x>.", "I am travelling with <x>.", "I came to Lindemar with <x>."),
        (
            "I promised <x> [a good time|something special|a few surprises], so I'm [a little|rather] nervous.",
            "It was <x> who talked me into coming [here|to Lindemar], [you see|actually].",
            "I have <x> waiting [in the lobby|on a bench outside|at the breakfast table], by the way.",
        ),
        (
            "[Then let us make it a success|We will do our best for all of you].",
            "[How lovely|That sounds like good company].",
            "[Give them my regards|Then we had better not keep anybody waiting].",
        ),
    ),
    "job": Fact(
        "<job>",
        ("I work as a <x>.", "I am a <x> by trade.", "I have been a <x> for [ten|twenty|thirty] years."),
        (
            "I'm a <x>, so [planning is not my strong side|a free week feels unreal|I notice odd things on holiday].",
            "[At home|Normally] I work as a <x> and [hardly ever travel|never get this much sleep].",
            "[Life as a <x> is hectic|Being a <x> wears me out], so this trip is [a treat|a blessing].",
        ),
        (
            "A <x>! [We do not meet many of those|That must be a fascinating trade|My uncle was one, too].",
            "[Then you have earned a rest|I admire that|I could never do that work].",
            "A <x> [deserves|should have] a proper holiday[, I think|].",
        ),
    ),
    "home": Fact(
        "<town>",
        ("I live in <x>.", "I grew up in <x>.", "My home is a small house in <x>."),
        (
            "[Back home|At home] in <x> [we have nothing like this|everything closes at six|it rains all the time].",
            "I come from <x>, where [everybody knows everybody|the sea is never far|the nights are very quiet].",
            "Lindemar is [so much livelier|warmer|noisier] than <x>, [I must say|isn't it].",
        ),
        (
            "<x> [is on my list|must be beautiful|sounds charming], [I would love to see it|truly].",
            "[We get few visitors|You are my first guest this week] from <x>.",
            "[I hope the change does you good|I hope Lindemar treats you well].",
        ),
    ),
    "pet": Fact(
        "<animal> called <first>",
        ("I have a <x>.", "At home I look after a <x>.", "My best friend is a <x>."),
        (
            "I keep a <x>, and I [miss the little rascal|worry a bit|hope the neighbours cope].",
            "[My neighbour|A friend] is feeding my <x> [this week|while I am away].",
            "I have never left my <x> alone [this long|for so many days].",
        ),
        (
            "[I am sure all is well|Animals forgive us quickly|That is a wonderful name].",
            "A <x>? [That made me smile|Now I would like to see a picture].",
            "[You will be missed, too|Do bring your friend next time].",
        ),
    ),
    "hobby": Fact(
        "<hobby>",
        ("My favourite pastime is <x>.", "I spend my weekends on <x>.", "I took up <x> last year."),
        (
            "I'm really [into|fond of] <x>, so I never [get bored|sit still for long].",
            "[To be honest|I admit], I would rather talk about <x> all day.",
            "[There is a shop for|I saw a poster about] <x> near the bridge. [What a find|That made my day]!",
        ),
        (
            "[Oh, there is a club for|We have a small museum of|My daughter loves] <x>[, by the way|].",
            "<x>! [What a pleasant pastime|That takes patience].",
            "[I must try that one day|How interesting].",
        ),
    ),
    "sport": Fact(
        "<sport>",
        ("I love <x>.", "I like a bit of <x> before work.", "I used to compete in <x>."),
        (
            "My legs are [still sore|tired] from all that <x> [yesterday|this morning].",
            "I train for a <x> contest, so [no heavy meals for me|I go to bed early].",
            "Is there [good|decent] <x> around here? [Never mind, another time|I will look it up later].",
        ),
        (
            "[I could never do|My brother swears by|Many guests ask me about] <x>.",
            "[You put me to shame|Very sensible|I am impressed].",
            "[Do take it easy today|A little rest cannot hurt].",
        ),
    ),
    "instrument": Fact(
        "<instrument>",
        ("I play the <x>.", "I am learning the <x>.", "I play the <x> in an amateur orchestra."),
        (
            "I heard somebody playing the <x> [under the arcades|by the fountain] [today|last night]. I play it, too.",
            "I play the <x>, and [my fingers itch already|I have not practised for days].",
            "I could not bring my <x> [on the train|on the plane], [sadly|what a shame].",
        ),
        (
            "The <x>! [My grandfather played it|I gave it up as a child|Such a warm sound].",
            "[Our street musicians are quite good|There is music on every corner here].",
            "[Perhaps you will play for us one day|A few days of silence may do you good].",
        ),
    ),
    "collectible": Fact(
        "<collectible>",
        ("I collect <x>.", "My shelves are full of <x>.", "I trade <x> with people all over the world."),
        (
            "I collect <x>, so I [have half the suitcase full already|must stop by the flea market].",
            "[Yesterday|This morning] I bought [three more|far too many] <x>.",
            "[Somebody told me|I have read] that Lindemar is a good place for <x>.",
        ),
        (
            "<x>? [Try the flea market on the quay|The shop beside the bridge has some].",
            "[Everybody needs a passion|What a nice thing to collect].",
            "[I hope your suitcase is big|Do keep some room in your luggage].",
        ),
    ),
    "dislike": Fact(
        "<dislike>",
        ("I cannot stand <x>.", "I am not fond of <x>.", "I avoid <x> whenever I can."),
        (
            "I [cannot stand|hate] <x>, [just so you know|if that matters].",
            "As long as I am spared <x>, I'm [happy|easy to please].",
        ),
        (
            "[I will keep that in mind|That is good to know|Understood].",
            "[You are not alone in that|Many guests tell me the same].",
        ),
    ),
    "occasion": Fact(
        "<occasion>",
        ("I am in town for <x>.", "I came for <x>.", "The reason for my trip is <x>."),
        (
            "I'm [here|in town] for <x>, so [everything should be just right|there is a lot to think of].",
            "It's all because of <x>, [you know|you see].",
        ),
        (
            "[How exciting|What a splendid reason to come|That sounds wonderful]!",
            "[Then we must make it memorable|I hope it goes well].",
        ),
    ),
    "food": Fact(
        "<food>",
        ("I could live on <x> food.", "I love <x> cooking.", "My favourite food is <x>."),
        (
            "I could eat <x> food [every day|morning, noon and night].",
            "I once took a course in <x> cooking, and [nothing burnt|nobody fell ill].",
        ),
        (
            "[You have good taste|So could I].",
            "[Now you are making me hungry|I must ask you for a recipe].",
        ),
    ),
    "music": Fact(
        "<music>",
        ("I listen to <x> music all day.", "<x> music makes me happy.", "I never miss a <x> concert."),
        (
            "I have had a <x> tune in my head [all day|since breakfast].",
            "I listen to <x> music while I plan things, [it calms me|it helps].",
        ),
        (
            "[Music is the best company|That is a fine way to start the day].",
            "[I had better not ask you to hum it|I know the feeling].",
        ),
    ),
    "language": Fact(
        "<language>",
        ("I am learning <x>.", "I teach <x> in the evenings.", "I dream of speaking <x> well."),
        (
            "I have been practising my <x> [on the tram|all morning], [without much luck|quite happily].",
            "[Do you speak any|How is your] <x>? I'm learning it.",
        ),
        (
            "[I only know how to say thank you in|My neighbour speaks] <x>.",
            "[It takes courage to learn a language|You will get there].",
        ),
    ),
}

# Small talk that says nothing about anybody, with an answer that fits.
IDLE: tuple[tuple[Phrases, Phrases], ...] = (
    (
        (
            "What [lovely|glorious|dreadful|strange] weather [we're having|you have here].",
            "Will it rain [today|later]?",
        ),
        ("[It changes every hour here|The wind comes from the sea], so [take a coat|bring an umbrella].",),
    ),
    (
        (
            "Your city is [beautiful|charming|wonderful], [by the way|I must say].",
            "I've [already|rather] fallen for this city.",
        ),
        ("[That is kind of you|How nice to hear]. [We are rather proud of it|Most people come back].",),
    ),
    (
        ("How long have you worked [here|at this desk]?", "[Are you|Were you] born in Lindemar?"),
        ("[Nine years|Eleven years|All my life], [and I have never been bored|and every day is different].",),
    ),
    (
        (
            "[Sorry|Excuse me], I got distracted for a [moment|second].",
            "[Sorry|Hold on], the connection was bad just now.",
        ),
        ("[No trouble at all|Take your time|That happens].",),
    ),
    (
        (
            "My feet [hurt|ache] from all the cobblestones.",
            "I walked [up to the castle|all along the river] this morning.",
        ),
        ("[A hot bath works wonders|Good shoes are half the battle]. [Do rest a little|You will sleep well].",),
    ),
    (
        ("I [nearly|almost] missed my train this morning.", "The journey was [long|tiring|bumpy], I must say."),
        ("[All the nicer that you made it|I am glad you arrived]. [The coffee next door helps|Do get some rest].",),
    ),
)

# --- What the guest says ----------------------------------------------------------------------------------------------

GREETINGS = (
    "[Hello|Hi|Good morning|Good afternoon|Good evening][!|.|, nice to meet you.]",
    "[Hello|Hi|Hi there|Good day], [is this the concierge|is this the concierge desk|am I in the right place]?",
    "[Hello|Hi|Good day], I've just [arrived|checked in|got off the train].",
    "[Hi|Hello|Good day], [do|would] you have a [minute|moment]?",
    "[Excuse me|Pardon me], [could you help me|may I bother you for a moment|is this the right desk]?",
    "[Hello|Hi], I could use some [help|advice|ideas].",
)

OPENINGS = (
    "I'm [looking for|after|trying to find|hoping to find] <thing>.",
    "I [need|want|would like|would love] <thing>[, please|].",
    "[Can|Could|Would] you [help me find|help us find|find me|find us] <thing>[, please|]?",
    "We [need|would like|would love|want] <thing>[, if possible|, please|].",
    "We're [hoping for|looking for|thinking of] <thing>.",
    "[Please get us|Please find me|Kindly find us] <thing>.",
    "My [plan|idea] is to [find|get] <thing>.",
)

NEXT_OPENINGS = (
    "I [also|still] need <thing>[, please|].",
    "[Next|Then|Besides that|Apart from that], [we need|I would like|we would like] <thing>.",
    "[There is one more thing|Something else]: [we would like|I want] <thing>[, please|].",
    "[Can|Could] you [also|now] [help me with|look for|find] <thing>?",
    "[And now|While we are at it|While I have you], I'm looking for <thing>.",
    "[On another note|Moving on], [we want|I want] <thing>.",
    "[And|Now] [how about|what about] <thing>?",
    "We [would also like|also want|will also need] <thing>[, if that is all right|].",
)

THINGS: dict[str, Phrases] = {
    "restaurant": (
        "a {price} {food} [restaurant|place|bistro|eatery]",
        "a table at a {price} {food} [restaurant|place]",
        "a {price} {food} restaurant",
    ),
    "taxi": ("a [taxi|cab|car]", "a [taxi|cab] [ride|]"),
    "museum": ("a {collection} museum", "[tickets for|entry to] a {collection} museum"),
    "concert": ("a {music} concert", "[tickets for|seats at] a {music} [concert|show]", "a {music} [show|performance]"),
    "room": ("a {price} [room|hotel room|hotel|place to stay|guesthouse]", "{price} [accommodation|lodgings]"),
    "tour": ("a [guided|] {theme} tour", "a {theme} [tour|walk]", "places on a {theme} [tour|walk]"),
    "spa": ("a {price} [spa|bathhouse]", "an appointment at a {price} spa", "a {price} spa"),
    "bike": ("{kind} [bikes|bicycles]", "{kind} bikes to [rent|hire]"),
}

# How a slot hangs on to a sentence; both speakers use these.
POSTS: dict[str, Phrases] = {
    "area": ("in the {area}", "in the {area}", "somewhere in the {area}"),
    "day": ("on {day}", "on {day}", "for {day}", "this {day}"),
    "room.day": ("from {day}", "from {day} on", "arriving on {day}"),
    "time": ("at {time}", "at {time}", "around {time}", "at about {time}"),
    "people": ("for {people}", "for {people} people", "for {people}", "for a party of {people}"),
    "departure": ("from {departure}", "from {departure}", "leaving from {departure}"),
    "destination": ("to {destination}", "to {destination}", "going to {destination}"),
    "seats": ("in the {seats}", "with seats in the {seats}"),
    "view": ("with a {view} view", "with a view of the {view}", "with a {view} view"),
    "nights": ("for {nights}",),
    "language": ("in {language}", "held in {language}", "with a guide who speaks {language}"),
    "treatment": ("for a {treatment}", "that offers a {treatment}", "with a {treatment}"),
    "duration": ("for {duration}",),
}

# The guest alone speaks of "us".
OWN_POSTS: dict[str, Phrases] = {
    "people": ("for {people} of us", "for the {people} of us"),
    "area": ("ideally in the {area}", "preferably in the {area}"),
    "room.day": ("as we arrive on {day}",),
}

# What the guest calls a booking of theirs.
MINE = {
    "restaurant": "our table",
    "taxi": "the taxi",
    "museum": "the museum",
    "concert": "the concert",
    "room": "our room",
    "tour": "the tour",
    "spa": "my spa appointment",
    "bike": "the bikes",
}

# A value that the guest has given for another topic already.
AGAIN_POSTS: dict[str, Phrases] = {
    "day": ("also on {day}", "on {day} as well", "on {day}, too,"),
    "room.day": ("also from {day}",),
    "people": ("for the same {people} of us", "for the same {people}", "for the same {people} people"),
    "area": ("in the {area} again", "again in the {area}"),
    "time": ("also at {time}",),
}

TELLS: dict[str, Phrases] = {
    "food": (
        "{food} food[, please| would be lovely| if you can].",
        "We [feel like|are in the mood for|are craving] {food} food.",
        "[Something|Anything] {food}[, please|].",
        "I [fancy|would love] some {food} cooking.",
        "It should be {food}.",
    ),
    "collection": (
        "[A|Any] {collection} museum [would be lovely|sounds good|, please].",
        "We're [curious about|keen on] a {collection} museum.",
        "I [would love|prefer] {collection}[, please|].",
        "[One of the|The] {collection} kind, [I think|please].",
    ),
    "area": (
        "[Somewhere|Anywhere] in the {area}[, please|].",
        "The {area} [would be best|suits us best|is closest to us].",
        "We [would like|prefer] the {area}.",
        "[Ideally|Preferably|If possible] in the {area}.",
        "The {area}[, please|, if you can].",
        "We will be near the {area} anyway, so [there|that would be handy].",
    ),
    "price": (
        "Something {price}[, please| would be best|].",
        "We [were thinking of|would like] something {price}.",
        "{price}[, please| is what we had in mind|, I think].",
        "[Let's say|I would say] {price}.",
    ),
    "day": (
        "On {day}[, please| would be best| if possible|].",
        "{day}[, please| suits us best| works for me| would be perfect].",
        "[Let's say|Let's go for|We're free on|It has to be] {day}.",
        "For {day}[, please|].",
        "We [had|have] {day} in mind.",
    ),
    "room.day": (
        "We [arrive|get in|check in] on {day}.",
        "From {day}[, please| on|].",
        "Starting on {day}.",
        "{day} [is when we arrive|is our first night].",
    ),
    "time": (
        "At {time}[, please| would be ideal|].",
        "{time}[, please| would be good| suits us|].",
        "[Around|About] {time}[, please|, if that works|].",
        "[Let's say|Let's make it|I was thinking of] {time}.",
        "{time} sounds [right|good].",
    ),
    "people": (
        "[There will be|There are] {people} of us.",
        "For {people}[, please|].",
        "We are {people}[ in all|].",
        "We're a party of {people}.",
        "{people} people[, please|].",
        "For {people} people[, please|].",
    ),
    "departure": (
        "[Please pick us up|Pick us up|The driver should collect us] at {departure}.",
        "From {departure}[, please|].",
        "We will be waiting at {departure}.",
        "We [start|leave] from {departure}.",
    ),
    "destination": (
        "[We're going|We want to go|It should take us] to {destination}.",
        "To {destination}[, please|].",
        "{destination} is where we are [going|headed].",
        "Our destination is {destination}.",
    ),
    "music": (
        "[Something|Some] {music}[, please| would be lovely].",
        "We [love|adore|like] {music} music.",
        "{music} music[, please|, if there is any].",
        "I'm in the mood for {music} music.",
    ),
    "seats": (
        "In the {seats}[, please| if you can|].",
        "The {seats} [would be nice|would suit us|, please].",
        "We [like|prefer] the {seats}.",
        "Seats in the {seats}[, please|].",
    ),
    "view": (
        "A {view} view [would be lovely|, please|would make my day].",
        "[With|We would like] a view of the {view}.",
        "We [would love|prefer] a {view} view.",
    ),
    "nights": (
        "[For|We're staying] {nights}.",
        "{nights}[, please| will do|].",
        "[Let's say|I think] {nights}.",
        "We [stay|need it] for {nights}.",
    ),
    "theme": (
        "[A|Any] {theme} [tour|walk] [sounds fun|would be great|, please].",
        "[We're curious about|I read about] the {theme} tour.",
        "We were [thinking of|hoping for] a {theme} tour.",
    ),
    "language": (
        "In {language}[, please|, if possible|].",
        "{language}[, please| would be easiest for us|].",
        "We all [speak|understand] {language}.",
        "It should be in {language}.",
    ),
    "treatment": (
        "A {treatment}[, please| sounds heavenly| would do me good].",
        "I [need|would like|am dreaming of] a {treatment}.",
        "[Definitely|Perhaps] a {treatment}.",
    ),
    "kind": (
        "{kind} bikes[, please| would be fun| are best for us].",
        "We [would like|prefer] {kind} bikes.",
        "[Let's take|We were thinking of] {kind} bikes.",
    ),
    "duration": (
        "For {duration}[, please|].",
        "{duration} [should be enough|will do|, please].",
        "We need them for {duration}.",
        "[Let's say|I think] {duration}.",
    ),
}

# The guest does not mind; the state says `any`.
ANYTHING: dict[str, str] = {
    "food": "kind of food",
    "collection": "museum",
    "area": "area",
    "price": "price range",
    "music": "music",
    "view": "view",
    "theme": "tour",
    "language": "language",
    "treatment": "treatment",
    "kind": "kind of bike",
}
NO_MATTER = (
    "{<slot>} <word> [is fine|will do|would be all right][ by me| with us|].",
    "[I don't mind|It doesn't matter|We're flexible], {<slot>} <word> [is fine|will do].",
    "[Oh|Well|Hm], {<slot>} <word> [is good|would suit us].",
)

CHANGES: dict[str, Phrases] = {
    "day": (
        "[could we|can we|may I] [make it|move it to|change it to] {day}[ instead|]?",
        "{day} would be better[ after all|].",
        "we'd [rather|sooner] [go|come] on {day}.",
        "I meant {day}[, not <old>|].",
    ),
    "time": (
        "[could we|can we] [make it|change it to] {time}[ instead|]?",
        "{time} would [be better|suit us better].",
        "I'd [rather|sooner] have {time}.",
        "[not <old>, but {time}|please make it {time}].",
    ),
    "people": (
        "we will be {people}[, not <old>|].",
        "[it turns out|I hear] we are {people} in all.",
        "please make it {people} people[ instead of <old>|].",
        "there will be {people} of us now.",
    ),
    "departure": (
        "please have us picked up at {departure}[ instead|].",
        "we will be leaving from {departure}[ after all|].",
    ),
    "destination": ("we want to go to {destination}[ instead|].", "please take us to {destination}[, not to <old>|]."),
    "seats": ("we'd [rather|sooner] sit in the {seats}.", "can we have the {seats} [instead|after all]?"),
    "nights": ("we'd like to stay {nights}[ instead|].", "please make it {nights}[, not <old>|]."),
    "duration": ("we'd [rather|sooner] have them for {duration}.", "please make it {duration}[ instead|]."),
}
CHANGE_LEADS = (
    "[Actually|Oh|Wait|Sorry|Hold on|On second thoughts|Hm|Oh dear], ",
    "[I have changed my mind|I got that wrong|Let me correct that|Small change of plan]: ",
    "[My friend just told me|I have thought about it|I've just had a message]: ",
)
REVISE_LEADS = (
    "[About|Coming back to|One more thing about|Just a thought about] <booking>: ",
    "[Oh|Wait|Sorry|By the way], about <booking>: ",
    "[Going back|Returning] to <booking>[ for a moment|]: ",
)

# What a guest may say before asking for something.
REASONS: dict[str, Phrases] = {
    "restaurant": (
        "[We're hungry|I'm starving|We skipped lunch].",
        "I'd like to [take everyone out|treat us to a good meal].",
        "[A colleague|A neighbour] told me that [one eats well here|the kitchens here are famous].",
    ),
    "taxi": (
        "It's [too far|a bit far] to walk.",
        "We have [heavy bags|a lot of luggage].",
        "I don't trust the [trams|buses][ here|].",
    ),
    "museum": (
        "[If it rains, we want to be indoors|We want to see some culture].",
        "[My feet need somewhere dry|I love old things behind glass].",
    ),
    "concert": (
        "[We fancy a night out|It has been years since I heard live music].",
        "[I would love to hear some live music|An evening of music would do us good].",
    ),
    "room": (
        "[We have nowhere to sleep yet|Our old booking fell through].",
        "[We're extending our stay|The place we had is too noisy].",
    ),
    "tour": (
        "[We know nothing about the city yet|I want to hear the stories behind the houses].",
        "[It's our first time here|A good guide is worth a lot].",
    ),
    "spa": (
        "[My back is killing me|I need to relax|It has been a stressful month].",
        "[Someone deserves to be pampered|I want to do nothing for once].",
    ),
    "bike": (
        "[We'd like to explore a bit|The river path looks inviting].",
        "[We want to get some fresh air|I would rather cycle than walk].",
    ),
}

THANKS = (
    "[Great|Perfect|Lovely|Wonderful|Excellent|Brilliant|Good], [thank you|thanks].",
    "[Thanks|Thank you|Cheers|Much obliged].",
    "[That's great|That's settled, then|That was quick|Sounds good|One thing less to worry about].",
    "[Super|Marvellous|Terrific|Splendid]!",
)
ANSWER_LEADS = ("[Sure|Yes, of course|Let me see|Right|Of course|Okay|All right]. ", "", "", "")
CHAT_LEADS = ("[You know what?|Let me think.|Before we go on, one thing.|Just a second.|Hm, one moment.] ", "", "")

ACCEPTS: dict[str, Phrases] = {
    "restaurant": ("[Please book|I'd like to book|Please reserve] a table[ there|].", "[Let's eat|We will eat] there."),
    "museum": ("[Please get us|We'll take|I'd like] tickets.", "[Let's go|We will go] there."),
    "concert": ("[Please book it|We'll take tickets|I want to hear that].", "[Please get us|Please reserve] tickets."),
    "room": ("[Please book it|We will stay there|I'll take it].", "[Please reserve|Please hold] a room[ for us|]."),
    "tour": ("[Please sign us up|Count us in|We'll join that one].", "[Please book|Please reserve] our places."),
    "spa": ("[Please book me in|I'd like an appointment].", "[Please make the appointment|Please book it]."),
    "bike": ("[Please reserve them|We'll take those|Let's rent them].", "[Please hold|Please put aside] the bikes."),
}
PLEASED = (
    "[That sounds|Sounds|That seems] [great|lovely|perfect|good|just right|ideal][!|.]",
    "[Yes|Oh yes|Yes, please|Perfect|Great|Wonderful|Good][.|!]",
    "[I like that|We'd like that|Why not|Very nice|Exactly what we wanted|That will do nicely].",
)
ANOTHERS = (
    "[Do you have|Is there|Would there be] [anything else|another one|something different]?",
    "[Hm, not quite what I had in mind|I'm not sure about that one]. [What else is there|Any other ideas]?",
    "[We know that one already|A friend warned me about that one]. [What else is there|Any other ideas]?",
    "[Could|Can] you suggest [another|a different one]?",
)
QUESTIONS: dict[str, Phrases] = {
    "street": ("[Where is it|What's the address|Which street is it on|Where do I find it]?",),
    "dish": ("What are they known for?", "What [should we order|is good there|do people eat there]?"),
    "chef": ("Who [is the chef|runs the kitchen|does the cooking]?",),
    "closes": ("[Until when are they open|When do they close|How late are they open]?",),
    "exhibit": ("What is there to see?", "[Is there anything we must not miss|What's the highlight]?"),
    "fee": ("[How much is it|What does it cost|What's the price]?", "[Is it expensive|Does it cost much]?"),
    "rate": ("[How much is it|What does it cost|What do they charge]?", "[Is it very expensive|Can we afford it]?"),
    "hall": ("[Where do they play|Which hall is it in|Where does it take place]?",),
    "starts": ("[When does it start|At what time does it begin|When should we be there]?",),
    "breakfast": ("[Is there breakfast|What's for breakfast|Do they serve breakfast]?",),
    "guide": ("Who [is the guide|leads the tour|will show us around]?",),
    "meeting": ("Where [do we meet|does it start|is the meeting point]?",),
    "length": ("How long [does it take|is the tour|does it last]?",),
    "therapist": ("Who [will treat me|is the therapist]?", "Do you know who does the treatments?"),
    "deposit": ("[Is there a deposit|How much is the deposit|Do they want a deposit]?",),
}
QUESTION_LEADS = (
    "[Sounds nice|Interesting|Good to know|I see|Nice|Oh].",
    "[Just one question|One more thing|I have a question first].",
    "",
    "",
)
SETTLE_LEADS = (
    "[All right|Fine|Okay|Very well|In that case|Why not], ",
    "[That's a pity|Too bad|What a shame], but ",
    "[No problem|Never mind], ",
    "",
)
# The guest settles for what was offered in place of a wish.
SETTLES: dict[str, Phrases] = {
    "food": ("{food} food [is fine|will do|sounds good], too.", "let's try {food} food[ instead|]."),
    "collection": ("a {collection} museum [is fine|will do], too.", "let's see the {collection} museum."),
    "area": ("the {area} [is fine|will do|works], too.", "we can go to the {area}."),
    "price": ("something {price} [is fine|will do].", "let's go for {price}[ instead|]."),
    "music": ("{music} music [is fine|will do], too.", "we'd also enjoy {music} music."),
    "view": ("a {view} view [is fine|will do|is just as nice].", "we'll take the {view} view."),
    "theme": ("the {theme} tour [is fine|sounds good], too.", "let's do the {theme} tour[ instead|]."),
    "language": ("{language} [is fine|will do|works], too.", "we can manage in {language}."),
    "treatment": ("a {treatment} [is fine|will do|sounds good], too.", "let's try the {treatment}."),
    "kind": ("{kind} bikes [are fine|will do], too.", "we'll take {kind} bikes[ instead|]."),
}
AGREES = (
    "[Yes|Correct|Right|Exactly|That's right|That's correct|Precisely][.|!|, thank you.|, please go ahead.]",
    "[Perfect|All correct|Looks good|Yes, please|Spot on|You got it][.|!]",
    "[Yes|Right|Exactly], {<slot>}[, that's right|, as I said|, as planned].",
    "[Yes|Correct], {<slot>} it is.",
)
PICKS = (
    "{name}[, please| sounds better| it is|].",
    "[Let's take|I prefer|We'd prefer|Let's go with|I like the sound of] {name}.",
)
LEAVES = (
    "[Thanks|Thank you], I'll [think it over|sleep on it|talk to the others first].",
    "[Good to know|That helps], but [please don't book it yet|I would rather not book now].",
    "[I only wanted to know|That's all I wanted to know], [no booking for now|no need to book], [thanks|thank you].",
)
BYES = (
    "[Goodbye|Bye|Take care|See you], and [thank you|thanks][ for everything| again|]!",
    "[You've been very helpful|You've been wonderful|That was easy]. [Thank you|Thanks][ and goodbye| so much|]!",
    "[Thank you so much|Thank you|Thanks a lot|Thanks]. [Have a nice day|Good night|Have a good evening|Goodbye]!",
)
NO_MORE = (
    "[No|No, thank you|No, thanks], that [is|was|will be] [all|everything][ for now| for today|].",
    "[That's all|That's everything|Nothing else][, thank you very much|, thanks a lot|, thanks for your help|].",
    "[I'm all set|We have everything we need][, thank you very much|, thanks a lot|, thanks for your help|].",
    *BYES,
)

# --- What the concierge says ------------------------------------------------------------------------------------------

WELCOMES = (
    "[Good day|Hello|Good morning], and welcome to Lindemar. [How can I help you|What can I do for you]?",
    "[Hello|Good day|Greetings], [this is|you have reached] the concierge. [How may I help|What may I arrange]?",
    "[Welcome|A warm welcome] to Lindemar! [What are you looking for|How can I be of service|What are your plans]?",
    "[Of course|Certainly|Gladly|With pleasure]. [What do you need|What shall it be|What do you have in mind]?",
)
FIRST_LEADS = (
    "[Welcome to Lindemar|Good day|Hello|A warm welcome][.|!] ",
    "[Gladly|With pleasure|I am happy to help|Let us see]. ",
    "",
    "",
)
ACKS = (
    "[Certainly|Of course|Very good|Noted|Gladly|Understood|Wonderful|With pleasure|Very well]. ",
    "[Thank you|I see|Let me see|Let me look|All right|Lovely|Excellent|Right away]. ",
    "",
    "",
)
CHANGE_ACKS = (
    "[No problem|That is easily changed|Of course|I have corrected that|Duly noted]. ",
    "[I will change that|Consider it changed|That is no trouble|Thank you for telling me]. ",
)

ASKS: dict[str, Phrases] = {
    "food": (
        "what kind of food [would you like|do you like|are you in the mood for]",
        "which cuisine [do you prefer|may it be]",
    ),
    "collection": ("what kind of museum [would you like|interests you|do you prefer]", "what would you like to see"),
    "area": (
        "which part of town [do you prefer|would suit you|would you like]",
        "in which area [should it be|shall I look]",
        "do you have [an area|a quarter] in mind",
    ),
    "price": (
        "what price range [do you have in mind|shall I look at|would suit you]",
        "how much would you like to spend",
        "should it be cheap, mid-range or upscale",
    ),
    "day": (
        "[which|what] day [would you like|would suit you|shall I put down|do you have in mind]",
        "for which day [is it|may I book]",
    ),
    "room.day": ("[which day|when] do you arrive", "from which day [do you need the room|shall I book]"),
    "time": (
        "[what|which] time [would you like|would suit you|shall I put down]",
        "at what time [should it be|would you like it]",
    ),
    "people": (
        "how many of you [will there be|are there|are coming]",
        "for how many people [is it|shall I book]",
        "how many people [should I plan for|will join]",
    ),
    "departure": ("where [shall we pick you up|does the ride start|should the driver wait]",),
    "destination": ("where [would you like to go|shall it take you|are you going]", "what is your destination"),
    "music": ("what kind of music [do you enjoy|would you like to hear]", "which music [do you prefer|may it be]"),
    "seats": ("where [would you like to sit|shall I look for seats]", "which seats [do you prefer|may it be]"),
    "view": (
        "what view [would you like|do you prefer|are you hoping for]",
        "should the window face anything in particular",
    ),
    "nights": ("how many nights [will you stay|do you need|shall I book]", "how long will you be staying"),
    "theme": ("what should the tour be about", "which theme [interests you|do you prefer]"),
    "language": ("which language [do you prefer|should the guide speak|suits you]", "in what language should it be"),
    "treatment": ("which treatment [would you like|do you have in mind]", "what treatment are you after"),
    "kind": ("what kind of bikes [would you like|do you need|shall I look for]",),
    "duration": ("[how long|for how long] [would you like to have them|do you need them]",),
}

DESCRIPTIONS: dict[str, Phrases] = {
    "restaurant": (
        "{name} is a {price} {food} restaurant in the {area}.",
        "I [can recommend|would suggest|recommend] {name}, a {price} {food} place in the {area}.",
        "[How about|What about|May I suggest] {name} on {street}? The kitchen is {food}[, the prices are {price}|].",
        "{name} in the {area} serves {food} food and is [known|famous|loved] for its {dish}.",
        "[Many guests like|People rave about] {name} on {street}, a {food} restaurant known for its {dish}.",
        "There is {name} in the {area}, where {chef} cooks {food} food at {price} prices.",
    ),
    "museum": (
        "{name} is a {collection} museum in the {area}.",
        "I [can recommend|would suggest] {name}, a {collection} museum on {street}.",
        "[How about|What about] {name} in the {area}? [People come for|Look out for|Do not miss] {exhibit}.",
        "The {collection} museum I like best is {name} on {street}, entry is {fee}.",
    ),
    "concert": (
        "There is a {music} concert by {name} in the {area}.",
        "{name} will play {music} music at {hall} in the {area}.",
        "I [can recommend|would suggest] {name} at {hall}, a {music} evening that starts at {starts}.",
        "[How about|What about] {name}? It is {music} music, and tickets are {fee}.",
    ),
    "room": (
        "{name} is a {price} house in the {area} with a {view} view.",
        "I [can recommend|would suggest] {name} on {street}, {price} and with a {view} view.",
        "[How about|What about] {name} in the {area}? A night is {rate}, and they serve {breakfast}.",
        "{name} on {street} is {price}, and you wake up to {breakfast}.",
        "There is a {price} room with a {view} view at {name} in the {area}.",
    ),
    "tour": (
        "{name} is a {theme} tour in {language}.",
        "I [can recommend|would suggest] {name}, a {theme} tour led by {guide} in {language}.",
        "[How about|What about] {name}? It is a {theme} tour and takes {length}.",
        "{guide} leads {name}, a {theme} walk in {language} that starts at {meeting}.",
    ),
    "spa": (
        "{name} in the {area} offers a {treatment} at {price} prices.",
        "I [can recommend|would suggest] {name} on {street} for a {treatment}.",
        "[How about|What about] {name}, a {price} spa in the {area}? A {treatment} there is {rate}.",
        "At {name} in the {area}, {therapist} gives a [wonderful|very good|soothing] {treatment}.",
    ),
    "bike": (
        "{name} in the {area} rents out {kind} bikes.",
        "I [can recommend|would suggest] {name} on {street} for {kind} bikes.",
        "[How about|What about] {name} in the {area}? They have {kind} bikes, and the deposit is {deposit}.",
        "You will find [good|sturdy|well kept] {kind} bikes at {name} on {street}.",
    ),
}
FOUND = (
    "[I have found|There are|I see] {choice} that [would fit|match].",
    "[You have|There is] quite a choice, {choice} in all. ",
)
PITCHES: dict[str, Phrases] = {
    "restaurant": (
        "Shall I [book|reserve] a table[ for you| there|]?",
        "Would you like [a table|a reservation|to eat there]?",
    ),
    "museum": ("Shall I [get|reserve] tickets[ for you|]?", "Would you like [tickets|to go there|me to book it]?"),
    "concert": ("Shall I [get|reserve] tickets[ for you|]?", "Would you like [tickets|to hear that|seats for that]?"),
    "room": ("Shall I [book|reserve] it[ for you|]?", "Would you like [to stay there|me to book it|a room there]?"),
    "tour": ("Shall I [sign you up|book places for you]?", "Would you like [to join|places on it|me to book it]?"),
    "spa": ("Shall I [make an appointment|book you in]?", "Would you like [an appointment|me to book it]?"),
    "bike": ("Shall I [reserve them|have them put aside]?", "Would you like [me to reserve them|those]?"),
}
DETAILS: dict[str, Phrases] = {
    "street": ("{name} is on {street}.", "You will find it on {street}.", "The address is {street}."),
    "dish": ("[They are known for their|Try the|People come for the] {dish}.", "I [like|would order] the {dish}."),
    "chef": ("The chef is {chef}.", "{chef} [does the cooking|runs the kitchen] there."),
    "closes": ("They close at {closes}.", "It is open until {closes}.", "{name} closes at {closes}."),
    "exhibit": ("[Look out for|Do not miss|Make sure you see] {exhibit}.", "Most visitors come for {exhibit}."),
    "fee": ("[It is|You pay|The price is] {fee}.", "It costs {fee}[, all included|]."),
    "rate": ("[It is|You pay|They charge] {rate}.", "It costs {rate}[, taxes included|]."),
    "hall": ("It is at {hall}.", "They play at {hall}[, as always|]."),
    "starts": ("It [starts|begins] at {starts}.", "The doors open earlier, but it starts at {starts}."),
    "breakfast": ("[Yes, they|They] serve {breakfast}.", "In the morning you get {breakfast}."),
    "guide": ("{guide} is your guide.", "{guide} leads the tour[, and knows every stone|]."),
    "meeting": ("The group meets at {meeting}.", "It starts at {meeting}."),
    "length": ("It takes {length}.", "Allow {length}[, with a short break|]."),
    "therapist": ("{therapist} [will look after you|does the treatments].", "You will be in the hands of {therapist}."),
    "deposit": ("The deposit is {deposit}.", "They ask for {deposit}, which you get back."),
}
MISSES = (
    "[I am sorry, but|Sorry, but|Unfortunately,|I am afraid|Regrettably,] [I cannot find|we do not have] <thing>.",
    "[I have looked everywhere|My list is long], but [there is no trace of|I cannot find] <thing>.",
)
OFFERS: dict[str, Phrases] = {
    "food": (
        "Would {food} food [do|be all right|suit you][ instead|]?",
        "[I could|I can] offer {food} food[, if you like|].",
    ),
    "collection": (
        "There is a {collection} museum[, though|]. [Would that do|Any interest]?",
        "Would a {collection} museum do?",
    ),
    "area": (
        "[Would|How would] the {area} [suit you|do]?",
        "I do have one in the {area}. [Would that do|Is that all right]?",
    ),
    "price": ("I do have [something|one that is] {price}. [Would that do|Is that all right]?", "May it be {price}?"),
    "music": ("Would {music} music [do|be all right|suit you][ instead|]?", "There is {music} music[, if you like|]."),
    "view": (
        "Would a {view} view [do|be all right|suit you][ instead|]?",
        "I could offer a {view} view[, if you like|].",
    ),
    "theme": ("There is a {theme} tour[, though|]. [Would that do|Any interest]?", "Would the {theme} tour do?"),
    "language": (
        "Would {language} [do|be all right|suit you][ instead|]?",
        "I do have one in {language}. [Would that do|Is that all right]?",
    ),
    "treatment": (
        "Would a {treatment} [do|be all right|suit you][ instead|]?",
        "They do a {treatment}[, if you like|].",
    ),
    "kind": (
        "Would {kind} bikes [do|be all right|suit you][ instead|]?",
        "I could get you {kind} bikes[, if you like|].",
    ),
}
ONLY = ("[I am afraid|Sorry, but] {name} is the only one [I have|that fits|on my list].",)
CHOICES = (
    "[I have two good ones|Two come to mind|You can choose]: {name}. [Which one do you prefer|Which one shall it be]?",
    "[Would you rather have|What about] {name}?",
)

CHECKS = (
    "[Let me repeat|Let me sum up|To be sure|I have noted]: <booking> <posts>. [Is that right|Correct|All correct]?",
    "[So that is|So I book] <booking> <posts>. [Is that right|Do I have that right|Shall I go ahead|Yes]?",
)
BOOKINGS: dict[str, Phrases] = {
    "restaurant": ("a table at {name}", "{name}"),
    "taxi": ("a taxi", "a car"),
    "museum": ("tickets for {name}", "{name}"),
    "concert": ("tickets for {name}", "{name}"),
    "room": ("a room at {name}", "{name}"),
    "tour": ("places on {name}", "{name}"),
    "spa": ("an appointment at {name}", "{name}"),
    "bike": ("bikes from {name}", "bikes at {name}"),
}
BOOKED: dict[str, Phrases] = {
    "restaurant": (
        "[Your|The] table at {name} <posts> is [booked|reserved].",
        "I have [reserved|booked] a table at {name} <posts>.",
    ),
    "taxi": (
        "[Your|The] [taxi|car] <posts> is [booked|ordered].",
        "I have [ordered|booked] [a taxi|a car] <posts>.",
    ),
    "museum": (
        "[Your|The] tickets for {name} <posts> are [ready|reserved].",
        "I have [reserved|bought] tickets for {name} <posts>.",
    ),
    "concert": (
        "[Your|The] tickets for {name} <posts> are [ready|reserved].",
        "I have got [you|] tickets for {name} <posts>.",
    ),
    "room": (
        "[Your|The] room at {name} <posts> is [booked|reserved].",
        "I have [reserved|booked] a room at {name} <posts>.",
    ),
    "tour": (
        "[Your|The] places on {name} <posts> are [booked|reserved].",
        "I have [signed you up|put you down] for {name} <posts>.",
    ),
    "spa": (
        "[Your|The] appointment at {name} <posts> is [booked|made].",
        "{name} [expects|is expecting] you <posts>.",
    ),
    "bike": (
        "[Your|The] bikes at {name} <posts> are [reserved|put aside].",
        "I have [reserved|ordered] the bikes at {name} <posts>.",
    ),
}
BOOK_LEADS = ("[Done|All set|There we are|It is done|That worked|Good news][.|!] ", "", "")
CODES = (
    "[The|Your] [reference|booking reference|code|booking number] is {code}.",
    "[Please mention|Just mention|Please quote] {code}[ if anybody asks| if you need to change anything|].",
    "[Reference|Confirmation]: {code}.",
)
DRIVERS = (
    "{driver} will [pick you up|come for you|be there] in a {car}.",
    "[Your driver is|The driver is called] {driver}[, look for a {car}|].",
    "[Look for|Watch out for] a {car}[ driven by {driver}|].",
)
UPDATES = (
    "[I have changed it|The booking is changed|That is changed|It is rearranged]: <booking>, now <posts>.",
    "[No problem|Of course|Certainly|With pleasure], it is <booking> <posts> now.",
)
SAME_CODE = ("[The reference stays|Your reference is still|It is still under] {code}.", "")
MORES = (
    "[Is there|Do you need|May I help you with|Can I help you with] anything else?",
    "[What else can I do for you|Anything else I can do|Anything else]?",
    "[Is there something else you need|Would you like me to arrange anything else]?",
    "[Shall I look for anything else|Do you have any other plans]?",
)
# Questions that carry no value: domain ("" is the topic at hand), act, wordings.
REMINDERS: dict[str, tuple[str, str, Phrases]] = {
    "confirm": (
        "",
        "confirm",
        ("[Is the booking right as I read it out|Shall I go ahead with it|May I book it like that]?",),
    ),
    "more": ("general", "reqmore", MORES),
}
LEFT = ("[Of course|Certainly|No hurry|As you wish|Take your time|By all means][.|, just let me know.]",)
RETURNS = ("[Now then|Well then|Anyway]. ", "[Now, back|Let us come back|But let us return] to your plans. ", "")
FAREWELLS = (
    "[You are welcome|My pleasure|It was a pleasure|Glad to help|Not at all][.|!] [Enjoy|Have fun in] Lindemar!",
    "[Thank you for calling|Thank you for your visit|Thank you], [goodbye|enjoy your stay|until next time].",
    "[Have a wonderful time|Enjoy your stay|Have a lovely day|Take care|Have a pleasant stay][.|!]",
    "[Goodbye|Farewell|Until next time|Bye for now], and [come back soon|enjoy the city|do drop by again][.|!]",
    "[Any time|Always happy to help|With pleasure]. [Enjoy your time here|Have a safe journey|Have a lovely stay]!",
)

# --- Near copies ------------------------------------------------------------------------------------------------------

# Words that carry no value, each with another that does as well in the same place.
SWAPS = {
    "lovely": "delightful",
    "great": "fantastic",
    "perfect": "flawless",
    "certainly": "absolutely",
    "wonderful": "superb",
    "hello": "hey",
    "thanks": "ta",
    "goodbye": "bye bye",
    "sorry": "apologies",
    "actually": "in fact",
    "unfortunately": "sadly",
    "gladly": "willingly",
    "please": "pretty please",
}
ADDED = (
    *(
        "Oh well.",
        "As it were.",
        "So to speak.",
        "Ahem.",
        "You know how it is.",
        "Right then.",
        "Phew.",
        "Let's see now.",
    ),
    *(
        "Honestly.",
        "Between ourselves.",
        "If I may say so.",
        "Needless to say.",
        "Haha.",
        "Indeed.",
        "Yep.",
        "Fair enough.",
    ),
)

# --- Habits -----------------------------------------------------------------------------------------------------------

TOPICS = (1,) * 10 + (2,) * 6 + (3,) * 3 + (4,)  # how many a guest has, drawn from these alike
EASE = (0.3, 0.5, 0.7, 0.9)  # shares of slots that guests give unasked

# What the concierge waits for -> the guest's moves by weight; the first that is possible stands in for one that is not.
HABITS: dict[str, dict[str, int]] = {
    "hello": {"raise": 85, "greet": 15},
    "wish": {"raise": 100},
    "slots": {"answer": 84, "chat": 10, "correct": 6},
    "venue": {"accept": 62, "ask": 15, "another": 8, "chat": 8, "leave": 5, "bye": 7},
    "choice": {"choose": 92, "chat": 8},
    "swap": {"settle": 94, "chat": 6},
    "confirm": {"agree": 78, "correct": 17, "chat": 5},
    "more": {"raise": 75, "bye": 16, "revise": 12, "chat": 8},
}
