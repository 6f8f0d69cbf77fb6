"""The words in which models say that they did something, by language and kind of action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from annabelle.policy.intent.action_kinds import Verbs


@dataclass(frozen=True, slots=True)
class ClaimLanguage:
    """How one language says `I have done it`; most fields is a regular expression."""

    first_person: str
    """`I have`, right before a verb."""
    passive_voice: str
    """`has been`, right before a verb; empty where the passive is left out."""
    done_phrases: str
    """Whole sentences that say `it is done`."""
    verbs: Verbs
    verb_last: bool = False
    """Whether words may stand between `I have` and the verb, as in German."""


_ADVERBS: Final = r"(?:(?:just|now|also|then|successfully|gone ahead and|went ahead and|already|both|all|since) )*"

ENGLISH: Final = ClaimLanguage(
    first_person=rf"\b(?:i've|i have|i|we've|we have|we) {_ADVERBS}",
    passive_voice=rf"\b(?:(?:has|have|was|were) {_ADVERBS}been|(?:was|were|is|are) (?:now|successfully)|was|were)"
    rf" {_ADVERBS}",
    done_phrases=r"(?:all )?done(?: and dusted)?|all set|it'?s (?:all )?done|(?:that'?s|that is|"
    r"it is) (?:all )?(?:done|taken "
    r"care of)|consider it done|(?:the )?task (?:is )?complete[d]?|mission accomplished|completed|i(?:'ve| have)? "
    r"(?:just )?(?:did it|done (?:it|that|so|this|everything|as you asked)|taken care of (?:it|that|everything)|"
    r"completed (?:it|the task|that|everything))",
    verbs={
        "send": r"sent|emailed|e-mailed|mailed|texted|messaged|replied|forwarded|posted|published|shared|notified|"
        r"informed|submitted|let \w+ know",
        "create": r"created|made(?! a note)|written|wrote|added|generated|drafted|set up|opened",
        "update": r"updated|changed|edited|modified|renamed|moved|replaced|corrected|marked|archived|restored|"
        r"copied|adjusted|labell?ed|assigned",
        "delete": r"deleted|removed|erased|cleared|cancell?ed|trashed|unsubscribed|purged",
        "schedule": r"scheduled|booked|rescheduled|set (?:up )?(?:a|an|the|your|you a|that|"
        r"this) (?:\w+ ){0,2}(?:reminder|"
        r"alarm|timer|job|task|meeting|event)|put (?:it|that|this|the \w+) (?:in|on|into) (?:your|the) calendar",
        "remember": r"saved|stored|remembered|memori[sz]ed|made a note|recorded|kept",
        "transfer": r"downloaded|uploaded|installed|exported|imported|backed up",
        "pay": r"paid|ordered|purchased|bought|transferred",
        "run": r"executed|run|ran",
        "control": r"turned (?:on|off|up|down)|switched (?:on|off)|enabled|disabled|activated|deactivated|started|"
        r"stopped|restarted",
        "search": r"searched (?:for|the|your|through|online|my)|looked (?:it|that|this|them) up|looked up|"
        r"checked (?:your|the|my) (?:\w+ )?(?:calendar|inbox|e-?mails?|mail|mailbox|files?|folders?|messages?|"
        r"weather|forecast|"
        r"website|web|internet|news|database|notes?|memory|schedule|status|logs?)|found the following|"
        r"found (?:some|a few|several|\d+|two|three|four|five) (?:\w+ )?(?:results?|articles?|e-?mails?|messages?|"
        r"files?|matches|entries|events?)|browsed|fetched|retrieved",
    },
)

GERMAN: Final = ClaimLanguage(
    first_person=r"\b(?:ich habe|ich hab|wir haben|habe ich) ",
    passive_voice=r"\b(?:wurde|wurden|ist|sind) ",
    done_phrases=r"erledigt|fertig|alles erledigt|ist erledigt|das ist erledigt|schon erledigt|habe ich erledigt",
    verb_last=True,
    verbs={
        "send": r"gesendet|geschickt|verschickt|versendet|abgeschickt|weitergeleitet|geantwortet|veröffentlicht",
        "create": r"erstellt|angelegt|hinzugefügt|eingerichtet|geschrieben|erzeugt",
        "update": r"aktualisiert|geändert|umbenannt|verschoben|bearbeitet|ersetzt|kopiert",
        "delete": r"gelöscht|entfernt|abgesagt|storniert",
        "schedule": r"geplant|gebucht|eingetragen|terminiert|vorgemerkt",
        "remember": r"gespeichert|gemerkt|notiert|abgelegt",
        "transfer": r"heruntergeladen|hochgeladen|installiert|exportiert|importiert",
        "pay": r"bezahlt|überwiesen|bestellt|gekauft",
        "run": r"ausgeführt|gestartet",
        "control": r"eingeschaltet|ausgeschaltet|aktiviert|deaktiviert|gestoppt",
        "search": r"nachgeschaut|nachgesehen|gesucht|nachgeschlagen|recherchiert",
    },
)

FRENCH: Final = ClaimLanguage(
    first_person=r"\b(?:j'ai|nous avons|je viens d'|je viens de) (?:bien |déjà |aussi )?(?:les |le |la |l')?",
    passive_voice=r"\b(?:a|ont) (?:bien )?été (?:bien )?(?:correctement )?",
    done_phrases=r"c'est fait|voilà,? c'est fait|fait|c'est bon,? c'est fait",
    verbs={
        "send": r"envoyée?s?|transmise?s?|répondu|publiée?s?|envoyer",
        "create": r"créée?s?|ajoutée?s?|rédigée?s?|créer",
        "update": r"modifiée?s?|mis à jour|mise à jour|renommée?s?|déplacée?s?|changée?s?",
        "delete": r"supprimée?s?|effacée?s?|annulée?s?|retirée?s?|supprimer",
        "schedule": r"planifiée?s?|programmée?s?|réservée?s?",
        "remember": r"enregistrée?s?|sauvegardée?s?|mémorisée?s?|noté",
        "transfer": r"téléchargée?s?|installée?s?|importée?s?|exportée?s?",
        "pay": r"payée?s?|commandée?s?|achetée?s?",
        "run": r"exécutée?s?|lancée?s?",
        "search": r"cherché|recherché|vérifié (?:votre|ton|vos|tes|la|le)",
    },
)

SPANISH: Final = ClaimLanguage(
    first_person=r"\b(?:he|hemos|ya he|acabo de) (?:ya )?",
    passive_voice=r"\b(?:ha|han) sido |\bse (?:ha|han) ",
    done_phrases=r"hecho|listo|ya está(?: hecho| listo)?|está hecho|todo listo",
    verbs={
        "send": r"enviad[oa]s?|mandad[oa]s?|respondido|reenviad[oa]s?|publicad[oa]s?|enviar",
        "create": r"cread[oa]s?|añadid[oa]s?|agregad[oa]s?|crear",
        "update": r"actualizad[oa]s?|modificad[oa]s?|cambiad[oa]s?|movid[oa]s?|renombrad[oa]s?",
        "delete": r"eliminad[oa]s?|borrad[oa]s?|cancelad[oa]s?|quitad[oa]s?|borrar|eliminar",
        "schedule": r"programad[oa]s?|reservad[oa]s?|agendad[oa]s?",
        "remember": r"guardad[oa]s?|almacenad[oa]s?|anotad[oa]s?|guardar",
        "transfer": r"descargad[oa]s?|subid[oa]s?|instalad[oa]s?|importad[oa]s?|exportad[oa]s?",
        "pay": r"pagad[oa]s?|comprad[oa]s?|pedid[oa]s?",
        "run": r"ejecutad[oa]s?",
        "search": r"buscado|consultado|revisado (?:tu|su|el|la)",
    },
)

# Polish says who did it in the verb itself, so no word stands before it.
POLISH: Final = ClaimLanguage(
    first_person=r"\b(?:już |właśnie )?",
    passive_voice=r"\b(?:został|została|zostało|zostały) ",
    done_phrases=r"zrobione|gotowe|załatwione|zrobiłe?a?m(?: to)?",
    verbs={
        "send": r"wysła(?:łe|ła)m|wysłan[eya]|odpisa(?:łe|ła)m|przesła(?:łe|ła)m|opublikowa(?:łe|ła)m",
        "create": r"utworzy(?:łe|ła)m|stworzy(?:łe|ła)m|doda(?:łe|ła)m|utworzon[eya]|dodan[eya]",
        "update": r"zaktualizowa(?:łe|ła)m|zmieni(?:łe|ła)m|przenios(?:łe|ła)m|zaktualizowan[eya]|zmienion[eya]",
        "delete": r"usun(?:ą|ę)(?:łe|ła)m|skasowa(?:łe|ła)m|odwoła(?:łe|ła)m|usunięt[eya]",
        "schedule": r"zaplanowa(?:łe|ła)m|zarezerwowa(?:łe|ła)m|ustawi(?:łe|ła)m|zaplanowan[eya]",
        "remember": r"zapisa(?:łe|ła)m|zapamięta(?:łe|ła)m|zapisan[eya]",
        "transfer": r"pobra(?:łe|ła)m|zainstalowa(?:łe|ła)m",
        "pay": r"zapłaci(?:łe|ła)m|kupi(?:łe|ła)m|zamówi(?:łe|ła)m",
        "run": r"uruchomi(?:łe|ła)m|wykona(?:łe|ła)m",
        "search": r"wyszuka(?:łe|ła)m|sprawdzi(?:łe|ła)m",
    },
)

LANGUAGES: Final = (ENGLISH, GERMAN, FRENCH, SPANISH, POLISH)
