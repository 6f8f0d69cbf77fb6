"""How orders are given in German."""

from __future__ import annotations

from typing import Final

from annabelle.policy.intent.forms import german, spoken

_NOBODY: Final = (
    r"(?!(?:mir|dir|uns|es|das|die|den|ein\w*|ne[nr]?|auf|alle\w*|in|ins|mal|bitte|was|etwas|unter|dazu|rein|hin|auch|"
    r"noch|jetzt|nur|nicht|nichts|mein\w*|kein\w*|als|im|ab|schon|ich|er|sie|wir|halt|dann|dafür|darauf|drauf|zu)\b)"
)
_SOMEBODY: Final = rf"(?:(?:der|dem|den|meine[mr]|unsere[mr]|deine[mr]) [\w-]+|{_NOBODY}[\w.'-]+)(?: \(?_+\)?)?"
_SAYS: Final = r",? (?:dass|daß|ob|zurück|wegen|kurz|wie|wann|ich|wir|er|es|ne|eine|einen|bitte|mal|:)"

GERMAN: Final = spoken(
    marks="der die das den dem des ein eine einen einer einem ne nen und oder zu zum zur von vom im ins ist sind mir "
    "dir mich dich uns ihm ihr ihn ihnen mein meine meinen meinem meiner dein deine für mit auf an am aus bei nach um "
    "bitte "
    "ich du er sie es wir nicht kein keine dass daß ob wenn falls als noch mal auch dann danach jetzt was wer wann wie "
    "warum kannst könntest würdest sag sage schreib schreibe schick schicke mach leg lege setz speicher speichere trag "
    "lösch antworte lies schau übersetz fass hab habe hat heute morgen uhr freitag montag weg alles",
    before="und|dann|auch|noch|jetzt|mal|danach|anschliessend|bitte|gerne|sonst|ansonsten|heute|morgen|schnell|"
    "kurz|ok|okay|hey|hi|hallo|ja|danke|annabelle|u",
    condition="(?:wenn|falls) [^,;?]{3,60}? (?:ist|sind|hat|haben|gibt|passt|geht|kostet|steht|will)",
    forms={
        "send": german(
            "sende schick+ab|los|rüber|raus|weiter|zurück schick verschick antworte beantworte leit+weiter "
            "lad+ein teil+mit teil gib/geb+weiter|durch informier benachrichtig veröffentlich poste schreib+zurück "
            "meld+zurück sag+zu bedank+bei gratulier jag+rüber|raus|los erkundig+bei|nach",
            r"bescheid (?:geben|sagen)|sage? .{1,40} bescheid|maile? (?!vo[nm]\b|aus\b|an mich|ist\b|kam\b|zu\b)|"
            r"schreib(?:e|en)? (?:.{1,60} )?(?:e-?mail|mail|nachricht|an)|gib .{1,60} bescheid|"
            rf"schreib(?:e|en)? {_SOMEBODY}{_SAYS}|sage? {_SOMEBODY} (?!ab\b)\w+|frage? {_SOMEBODY}(?:{_SAYS}| nach| "
            rf"wo| was)|(?:schreib|sag|richt)e? (?:ihm|ihr|ihnen) (?:das|es)|frage? (?:(?:mal|kurz|bitte) )?(?:bei|"
            rf"beim|in|im|"
            r"an) .{1,80} (?:nach|ob|wann|was|wie|wo|an)|"
            rf"richte? {_SOMEBODY} .{{0,60}}aus|sage? {_SOMEBODY} (?:\w+ )?ab|sag (?:ja|nein|zu)|lass {_SOMEBODY} "
            rf"wissen",
        ),
        "create": german(
            "erstell leg+an|ab füg+hinzu|dazu|ein richte+ein schreib+auf|rein|hin schreib mach erzeug verfass "
            "entwirf/entwerf speicher+ab speicher notier halt+fest setz bereit+vor bereite+vor pack tu steck "
            "zeichne+auf nimm/nehm+auf trag+ein häng+an sammel sicher heb+auf",
            r"fass\w* .{1,80} (?:in|als) (?:eine[rm]? )?(?:notiz|datei) zusammen|ich (?:brauche?|möchte|will|hätte "
            r"gern(?:e)?) (?:eine?n?|ne[n]?)|fass\w* .{1,80} zusammen (?:in|als)|"
            r"füg .{1,60} zu\w* .{1,40}|kommt? (?:auf|in) (?:die|den|meine?n?)|(?:neue[rs]?|neuen) (?:termin|notiz|"
            r"todo|aufgabe)",
        ),
        "update": german(
            "aktualisier änder benenn+um nenn+um umbenenn verschieb schieb bearbeite ersetz kopier markier archivier "
            "hak+ab streich+durch ergänz füg+hinzu|dazu|ein räum+auf|weg überarbeite verbesser korrigier sortier "
            "trag+ein|um verleg buch+um stell+um zieh+vor pack steck ordne+zu|ein ordne kennzeichne benenn tausch "
            "verlänger pass+an häng+an schreib+um|dazu verknüpf erledig",
            r"kürzen|kürze (?!(?:e-?mail|mail|notiz|nachricht|antwort|frage|liste|zusammenfassung)\b)|"
            r"schreib(?:e|en)? (?:in|unter|zu) (?:den|die|das|dem|der|meine\w*)|(?:lege?|setze?|tu|stelle?|ziehe?|"
            r"mache?) .{1,60} (?:auf|in|nach|unter|vor|später|früher|länger|kürzer)|"
            r"gib .{1,60} (?:das|die|ein|eine) (?:label|etikett|kategorie|markierung)|ab ins archiv|"
            r"(?:nimm|räume?|hole?|schaff) .{1,60} aus (?:dem|der|meine[mr]) (?:posteingang|postfach|inbox)",
        ),
        "delete": german(
            "lösch entfern stornier sag+ab vergiss/vergess leere wirf/werf+weg|raus schmeiss+weg|"
            "raus tilg entsorg bestell+ab streich nimm/nehm+raus|weg",
            r"(?:wirf|werf|schmeiss|pack|tu|schieb|leg|hau|kipp)e? .{1,60} in den (?:papierkorb|müll)|weg mit|ab in "
            r"den (?:papierkorb|müll)|nimm .{1,60} (?:aus|von) (?:dem|der|meine[mr]) (?:\w*kalender|\w*liste)",
        ),
        "schedule": german(
            "plane plan+ein blockier blocke buch trag+ein erinner halt+frei vereinbar reservier terminier",
            r"trag'?s ein|erinner(?:e)? mich|setze? .{1,60} in (?:den|meinen) kalender",
        ),
        "remember": german(
            "merk+dir behalte speicher+ab",
            r"merke? dir|denke? (?:dran|daran)|präge? dir .{1,40} ein|vergiss nicht,? (?:dass|daß)|behalte? .{1,40} "
            r"im kopf",
        ),
        "transfer": german(
            "lad+herunter|runter|hoch installier exportier importier speicher+ab speicher kopier sicher zieh+runter "
            "häng+an"
        ),
        "pay": german("bezahl überweis bestell kauf zahl"),
        "run": german("führ+aus starte berechne rechne+aus rechne analysier probier+aus lass+laufen"),
        "control": german(
            "schalt+ein|aus|an|ab schalt aktivier deaktivier stopp abonnier folge änder blockier stell+ein|um|ab",
            r"nenn mich|ab jetzt|ab sofort|bestell .{1,60} ab",
        ),
    },
)
