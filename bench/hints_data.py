"""Requests that come again, for the benchmark of hints: what is tried first for each kind, and what works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """One kind of request. `tried` comes before `works` as long as nobody says what works."""

    name: str
    tried: tuple[str, ...]
    works: tuple[str, ...]
    requests: tuple[str, ...]
    """The first one, then the same for other things, in words that are more or less alike."""
    reworded: str
    """The same in other words."""
    empty: bool = False
    """What is tried gives an empty result instead of an error."""


FAMILIES = (
    Family(
        "look up and note", ("filer_search_files", "notes_search_notes"), ("searcher_web_search", "notes_create_note"),
        (
            "Find the opening hours of the museum and note them for me.",
            "Find the opening hours of the city library and note them for me.",
            "Please note the opening hours of the swimming pool, find them first.",
            "Find out the opening hours of the post office and make a note.",
        ),
        "When can I get into the botanical garden? Write it down.",
    ),
    Family(
        "file an invoice", ("gmail_get_new_emails",), ("gmail_list_emails", "gmail_get_attachment", "filer_move_file"),
        (
            "Save the invoice from the electricity company into my invoices folder.",
            "Save the invoice from the internet provider into my invoices folder.",
            "Save the latest invoice of the plumber into the invoices folder.",
            "Put the invoice from the water company into my invoices folder.",
        ),
        "The dentist mailed a bill, keep it with the others.",
    ),
    Family(
        "add up a spreadsheet", ("documents_read_document", "filer_read_file"),
        ("documents_list_sheets", "documents_read_spreadsheet", "codexec_calculate"),
        (
            "How much did we spend on groceries according to the budget spreadsheet?",
            "How much did we spend on travel according to the budget spreadsheet?",
            "According to the budget spreadsheet, how much did we spend on rent?",
            "How much was spent on clothes in the budget spreadsheet?",
        ),
        "Sum up what the car has cost us this year from my table.",
    ),
    Family(
        "find a time and book it", ("gmail_list_events",), ("gmail_find_free_time", "gmail_create_event"),
        (
            "Find a free hour next week and book a meeting with Ada.",
            "Find a free hour next week and book a meeting with the architect.",
            "Book a meeting with Tom, find a free hour this week.",
            "Find a free afternoon and book a meeting with the landlord.",
        ),
        "I have to see Grace soon, arrange something where I have nothing on.",
    ),
    Family(
        "news of a feed", ("searcher_web_fetch", "web_browser_navigate"), ("everyday_read_feed", "notes_create_note"),
        (
            "Summarise the latest posts of the gardening blog into a note.",
            "Summarise the latest posts of the astronomy blog into a note.",
            "Write a note that summarises the latest posts on the cycling blog.",
            "Summarise the newest posts of the chess blog in a note.",
        ),
        "What has my favourite baker published lately? Keep the gist.",
    ),
    Family(
        "a tool that has to be searched for", ("search_tools",), ("everyday_make_qr_code",),
        (
            "Make a sticker for guests with the password of the wireless network.",
            "Make a sticker for guests with the address of the garden page.",
            "Make a sticker with the password of the office network for guests.",
            "Make stickers for guests with the link to the house rules.",
        ),
        "Visitors should get online by pointing their phone at the wall.",
    ),
    Family(
        "write to somebody", ("telegram_send_message",), ("telegram_search_users", "telegram_send_message"),
        (
            "Tell Ada on Telegram that dinner is at eight.",
            "Tell Tom on Telegram that dinner is cancelled.",
            "Let Grace know on Telegram that dinner is at nine.",
            "Tell Linus on Telegram that the dinner is at our place.",
        ),
        "Message Barbara that we are running late.",
    ),
    Family(
        "empty results", ("notes_search_notes", "search_memories"), ("filer_search_files", "documents_read_document"),
        (
            "What does the rental contract say about pets?",
            "What does the rental contract say about parking?",
            "What does my rental contract say about the notice period?",
            "What is in the rental contract about painting the walls?",
        ),
        "Am I allowed to have a dog in this flat?", empty=True,
    ),
)  # fmt: skip

STRANGERS = (
    "What time is it in Tokyo?",
    "Good morning!",
    "Remind me to water the plants tomorrow.",
    "Find a recipe for lentil soup.",
    "How much is 20 euros in pounds?",
    "Note that the key is under the mat.",
    "Delete the file draft.md.",
    "What do you know about my sister?",
    "Book a table for two at the Italian restaurant.",
    "Is it going to rain this weekend?",
    "Save this page as a document.",
    "Tell me a joke about penguins.",
    "Find the opening scene of the film and describe it.",
    "Save the photo from the water park into my pictures folder.",
    "How much did the company spend on rent last year?",
    "Book a free hour at the gym next week.",
    "Tell Ada what Telegram is.",
    "Summarise the contract into a note.",
    "What does the note about the museum say?",
    "Make a list of guests for the dinner.",
    "Find the invoice of the architect.",
    "Write a blog post about chess.",
)
"""Requests of none of these kinds; the later ones share words with one."""

# Written after the thresholds were chosen with the rows above, and not used for anything but to measure.
UNSEEN = (
    Family(
        "pdf to note",
        ("filer_read_file",),
        ("documents_read_document", "notes_create_note"),
        (
            "Read the manual of the washing machine and write down how to clean the filter.",
            "Read the manual of the dishwasher and write down how to descale it.",
            "Check the coffee machine's manual and write down how often to replace the seal.",
            "Read the boiler manual and tell me how to bleed the radiators.",
        ),
        "How do I reset the oven clock?",
    ),
    Family(
        "currency",
        ("searcher_web_search",),
        ("everyday_convert_currency", "notes_add_todo"),
        (
            "Convert the hotel price of 480 dollars to euros and add it to my budget list.",
            "Convert the flight price of 900 dollars to euros and add it to my budget list.",
            "Add the car rental, 300 pounds, to my budget list in euros.",
            "Put 120 francs for the train on the budget list, in euros.",
        ),
        "What will the tour set me back at home?",
    ),
    Family(
        "reply",
        ("gmail_send_email",),
        ("gmail_list_emails", "gmail_reply_email"),
        (
            "Answer the school's mail that we will come to the open day.",
            "Answer the mail of the sports club that we cannot come.",
            "Reply to the kindergarten's mail that Mia is ill.",
            "Answer the mail from the choir that I will be there on Monday.",
        ),
        "Let the tax office know I agree.",
    ),
    Family(
        "weather plan",
        ("everyday_get_weather",),
        ("everyday_get_forecast", "gmail_create_event"),
        (
            "If Saturday is dry, put a hike into my calendar.",
            "If Sunday stays dry, put a bike tour into my calendar.",
            "Put a picnic into the calendar on Friday if it is dry.",
            "If it is sunny next weekend, plan a trip to the lake.",
        ),
        "Can we go sailing soon? Block the day.",
    ),
)

UNSEEN_STRANGERS = (
    "Read the news and tell me what is new.",
    "Write down that the filter was changed.",
    "Add milk to my shopping list.",
    "How many euros are left in the budget?",
    "Is there new mail from the school?",
    "Which mails did I not answer?",
    "What is on my calendar on Saturday?",
    "Put the file manual.pdf into my documents.",
    "Is it dry in Rome?",
    "Answer in French from now on.",
    "Find a cheap hotel for 480 dollars.",
    "Convert the picture to black and white.",
)
