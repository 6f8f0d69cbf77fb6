"""The words rules are made of: what is done, to what kind of thing, and which tools and classes that means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from annabelle.core.trust import ToolClass

Deed = Literal["delete", "send", "write", "change", "run", "pay", "book", "read", "download", "remember"]
Thing = Literal[
    "mail", "event", "file", "note", "todo", "contact", "chat", "memory", "code", "money", "page", "settings"
]

ACTING: Final[tuple[ToolClass, ...]] = ("write_inside", "send_outside", "destroy", "execute", "control")

DEEDS: Final[Mapping[Deed, str]] = {
    "delete": r"delet\w*|remov\w*|eras\w*|trash\w*|purg\w*|clear\w*|cancel\w*|wip(?:e|ing)\w*|empty(?:ing)?|"
    r"throw(?:ing)? away|get(?:ting)? rid of|discard\w*|unsubscrib\w*|lösch\w*|entfern\w*|leer(?:e|en|st)|stornier\w*|"
    r"wegwerf\w*|supprim\w*|suppression|effac\w*|retir\w*|vide[rz]?|annul\w*|borr\w*|elimin\w*|quit(?:es|ar)|"
    r"cancel\w*|usu[wńn]\w*|usunięci\w*|kasuj\w*|skasuj\w*|skasowan\w*|odwoł\w*",
    "send": r"sen[dt](?:ing|s)?|e?-?mailing|reply\w*|repl(?:y|ies)|respond\w*|forward\w*|shar(?:e|es|ing)|post(?:ing)?|"
    r"publish\w*|upload\w*|invit(?:e|es|ing)|messag(?:e|ing)(?= )|texting|tweet\w*|contact(?:ing)?(?= )|reach(?:ing)? out|"
    r"send(?:e|en|est)|schick\w*|verschick\w*|antwort\w*|beantwort\w*|weiterleit\w*|leitest|teil(?:e|en|st)|"
    r"veröffentlich\w*|hochlad\w*|einlad\w*|lädst|envo[iy]\w*|répond\w*|transf[eèé]r\w*|partag\w*|publi(?:e|er|es|ez)|"
    r"invit(?:e|er|es|ez)|env[ií]\w*|mand(?:a|ar|es|e)|respond\w*|reenv[ií]\w*|compart\w*|publi(?:ca|car|ques|que)|"
    r"invit(?:ar|es)|wys[yłe]\w*|wyślij\w*|wyśle\w*|odpis\w*|odpowi\w*|przes[yłe]\w*|prześl\w*|udostępni\w*|publikuj\w*|"
    r"zaprasza\w*",
    "write": r"writ(?:e|es|ing)|schreib\w*|écri\w*|escrib\w*|pis(?:z|ać|ania|aniem)\w*|napis\w*",
    "change": r"chang\w*|edit\w*|modif\w*|updat\w*|overwrit\w*|mov(?:e|es|ing)|renam\w*|touch\w*|creat\w*|add(?:ing)?|"
    r"mak(?:e|ing) changes to|alter\w*|archiv\w*|mess(?:ing)? with|stay(?:ing)? (?:away from|out of|off)|"
    r"keep(?:ing)? (?:away from|out of|off)|hands off|leave|alone|änder\w*|bearbeit\w*|überschreib\w*|verschieb\w*|"
    r"umbenenn\w*|anfass\w*|fass(?:e|t|en)?|anrühr\w*|rühr\w*|berühr\w*|erstell\w*|anleg\w*|verände?r\w*|modifi\w*|"
    r"déplac\w*|renomm\w*|touch\w*|cré(?:e|er|es|ez)|cambi\w*|muev\w*|mov(?:er|as)|toc(?:ar|as|a)|toqu\w*|renombr\w*|"
    r"cre(?:ar|es|a)|zmieni\w*|zmian\w*|przenos\w*|przenie\w*|edyt\w*|rusz\w*|dotyk\w*|twórz\w*|tworz\w*|modyfik\w*",
    "run": r"run(?:ning|s)?|execut\w*|launch\w*|ausführ\w*|führ\w*|start(?:e|en|est|ing)?|exécut\w*|lanc(?:e|er|es|ez)|"
    r"ejecut\w*|uruch\w*|wykon\w*",
    "pay": r"pay(?:ing|s)?|spend(?:ing|s)?|buy(?:ing|s)?|purchas\w*|order(?:ing|s)?|donat\w*|bezahl\w*|zahl(?:e|en|st)|"
    r"kauf\w*|bestell\w*|überweis\w*|ausg[ei]b\w*|gib(?:st)?|pai?e\w*|payer|achet\w*|achèt\w*|command(?:e|er|es|ez)|"
    r"dépens\w*|compr(?:a|ar|es)|pag(?:a|ar|ues)|gast\w*|kup\w*|płac\w*|płać\w*|zapłac\w*|zapłać\w*|zamaw\w*|zamów\w*|"
    r"wyda\w*",
    "book": r"book(?:ing|s)?|reserv\w*|buch(?:e|en|st)|réserv\w*|rezerw\w*|zarezerw\w*",
    "read": r"read(?:ing|s)?|open(?:ing|s)?|look(?:ing)? (?:at|into|in)|access\w*|les(?:e|en)|liest|lies|öffn\w*|"
    r"li(?:s|re|t)|ouvr\w*|le(?:er|as|e)|abr(?:ir|as|e)|czyta\w*|przeczyt\w*|otwier\w*|otwórz\w*",
    "download": r"download\w*|install\w*|herunterlad\w*|installier\w*|télécharg\w*|descarg\w*|instal\w*|pobier\w*|"
    r"zainstal\w*",
    "remember": r"remember\w*|memori[sz]\w*|stor(?:e|ing)|merk(?:e|en|st)|mémoris\w*|memoriz\w*|zapamięt\w*",
}
"""Every form the verb takes in a rule. The first that fits is it, so what is more telling comes first."""

CLASSES: Final[Mapping[Deed, tuple[ToolClass, ...]]] = {
    "delete": ("destroy",),
    "send": ("send_outside",),
    "write": ("write_inside", "destroy", "send_outside"),
    "change": ("write_inside", "destroy"),
    "run": ("execute",),
    "pay": ("send_outside",),
    "book": ("send_outside", "write_inside"),
    "read": (),
    "download": ("write_inside", "execute"),
    "remember": ("write_inside", "control"),
}

THINGS: Final[Mapping[Thing, str]] = {
    "mail": r"(?:e-?)?mails?|inbox|postfach|courriels?|courriers?|correos?(?: electrónicos?)?|(?:e-?)?mail(?:e|i|a|ów)|"
    r"poczt\w*|drafts?|entwürfe?|entwurf|brouillons?|borrador(?:es)?",
    "event": r"events?|meetings?|appointments?|calendar|invitations?|termin\w*|kalender\w*|besprechung\w*|einladung\w*|"
    r"rendez-vous|réunions?|événements?|calendrier|eventos?|reuni(?:ón|ones)|citas?|calendario|wydarze\w+|spotka\w+|"
    r"kalendarz\w*|hotels?|flights?|tables?|tickets?|flüge?|tisch\w*|hôtels?|vols?|billets?|hotel(?:es)?|vuelos?",
    "file": r"files?|folders?|director(?:y|ies)|documents?|docs?|photos?|pictures?|datei\w*|ordner\w*|verzeichnis\w*|"
    r"dokument\w*|fichiers?|dossiers?|répertoires?|archivos?|carpetas?|documentos?|ficheros?|plik\w*|folder\w*|katalog\w*",
    "note": r"notes?|notiz\w*|notas?|notatk\w*|notatek",
    "todo": r"to-?dos?|tasks?|lists?|aufgabe\w*|listen?|tâches?|listes?|tareas?|listas?|zada\w+|list[ay]?",
    "contact": r"contacts?|kontakt\w*|contactos?",
    "chat": r"messages?|chats?|telegram(?:s| messages)?|nachricht\w*|mensajes?|wiadomo\w+",
    "memory": r"memor(?:y|ies)|facts?|gedächtnis|erinnerungen|fakten|mémoire|faits?|memoria|pamię\w+",
    "code": r"code|scripts?|commands?|programs?|programm\w*|befehl\w*|skript\w*|commandes?|programmes?|código|comandos?|"
    r"kod\w*|skrypt\w*|polece\w+",
    "money": r"money|geld|argent|dinero|pieniądz\w*|pieniędz\w*|payments?|purchases?",
    "page": r"web ?sites?|web ?pages?|pages?|forms?|browser|web|internet|formular\w*|webseiten?|sites?|páginas?|stron\w*",
    "settings": r"settings?|persona(?:lity)?|rules?|filters?|subscriptions?|channels?|servers?|configuration|"
    r"einstellung\w*|regeln?|paramètres?|réglages?|règles?|filtres?|ajustes?|reglas?|filtros?|ustawie\w+|zasad\w*",
}

TOOLS: Final[Mapping[Thing, tuple[str, ...]]] = {
    "mail": (
        "gmail_*email*",
        "gmail_*draft*",
        "gmail_modify_labels",
        "gmail_mark_read",
        "*_*mail*",
        "*mail*_*message*",
    ),
    "event": ("*_*event*", "*_*calendar*", "*_*meeting*"),
    "file": ("filer_*", "documents_*", "*_*file*", "*_*folder*", "*_*director*", "*_*document*"),
    "note": ("*_*note*",),
    "todo": ("*_*todo*", "*_*task*", "notes_*list*"),
    "contact": ("*_*contact*",),
    "chat": ("telegram_*", "send_message", "send_telegram", "*_*message*", "*_*chat*"),
    "memory": ("memory_*", "store_fact", "*_*memor*", "*_*fact*"),
    "code": ("codexec_*", "*_*script*", "*_*code*"),
    "money": (),
    "page": ("web_*", "searcher_*", "*_*page*", "*_*browser*"),
    "settings": (),
}
"""Globs over exposed names; those with a star in front are for servers the user added."""

PAYING: Final = (
    "web_browser_*", "*pay*", "*buy*", "*purchas*", "*order*", "*checkout*", "*donat*", "*transfer*", "*invoice*",
)  # fmt: skip
BOOKING: Final = (*PAYING, "*book*", "*reserv*", "*_*event*")

SAYING: Final[Mapping[Deed, str]] = {
    "delete": "deletes",
    "send": "sends out",
    "write": "writes or sends",
    "change": "changes or deletes",
    "run": "runs",
    "pay": "spends",
    "book": "books",
    "read": "opens",
    "download": "downloads",
    "remember": "remembers",
}
CALLED: Final[Mapping[Thing, str]] = {
    "mail": "mail",
    "event": "events",
    "file": "files",
    "note": "notes",
    "todo": "to-dos",
    "contact": "contacts",
    "chat": "messages",
    "memory": "memories",
    "code": "code",
    "money": "money",
    "page": "pages",
    "settings": "settings",
}

FILLERS: Final = frozenset(
    """
    a an the any all some every each my mine your our of it its them this that these those anything nothing something
    anyone anybody everyone someone stuff things thing please ever you me us i again at whatsoever more new old single
    into onto one be is are and or nor any other also just even
    der die das den dem des ein eine einen einem einer keine kein keinen keinem keiner meine mein meinen meinem meiner
    deine irgendetwas irgendwas etwas nichts nicht nie niemals alles alle du mich mir bitte und oder auf keinen fall zu
    darfst sollst willst wirst irgendwelche an aus ein her hin weg ab um niemanden niemandem dir jemandem
    le la les l un une des de d du mes mon ma ne n jamais rien pas aucun aucune quoi que ce soit toute tout tous toutes
    personne et ou en y à
    el los las lo un una unos unas mis mi nada nunca no ningún ninguna ninguno todo toda todos todas y o ni algo nadie
    mojego mojej moich moje mój moją mi nic nie nigdy żadnych żadnego żadnej wszystkie wszystko i lub ani się ci
    cokolwiek nikomu
    """.split()
)
LEADING_TO_A_NAME: Final = frozenset(
    """
    to from in inside at with about called named by within for under an von vom im in aus mit namens bei für à au aux de
    du dans avec nommé nommée pour chez a al de del en con llamado llamada para do od z ze w we dla o
    """.split()
)
CONDITIONS: Final = frozenset(
    """
    if when while unless except besides over above under below more less than after before until during only between
    without weekend weekends weekdays night nights monday tuesday wednesday thursday friday saturday sunday today tomorrow
    wenn falls außer über unter mehr weniger als nach während nur zwischen ohne heute morgen sonntag sonntags
    si sauf plus moins après pendant seulement entre sans aujourd'hui demain
    cuando excepto más menos después mientras solo sólo entre sin hoy mañana
    jeśli gdy oprócz powyżej poniżej więcej mniej niż po podczas tylko między bez dzisiaj jutro
    """.split()
)
NOT_A_NAME: Final = frozenset(
    """
    my your our his her their boss wife husband mother father friend friends family colleague colleagues strangers stranger
    people others him her them else outside chef frau mann mutter vater freunde familie kollegen fremde leute ihm ihr
    patron femme mari amis famille collègues gens lui jefe esposa marido amigos familia colegas gente szefa szefowi żony
    męża rodziny ludzi jemu
    """.split()
)
"""Who these are no call says: a rule about them could not be held."""
