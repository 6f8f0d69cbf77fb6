"""Verbs as people use them to give orders. `plain` ones are verbs wherever they stand; `placed` ones are nouns as
well, and count only where a verb stands: "mail Ann" orders, "the mail from Ann" does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from annabelle.policy.intent.kinds import ActionKind


@dataclass(frozen=True, slots=True)
class Imperatives:
    """Regular expressions by kind of action, for whole words in lower case, and words that tell the language."""

    marks: str
    plain: Mapping[ActionKind, str]
    placed: Mapping[ActionKind, str]


ENGLISH: Final = Imperatives(
    marks="the a an my me and to of in is it for from with that this on at what i you please all by",
    plain={
        "send": r"(?:re)?send|reply|respond|forward|invite|uninvite|share|notify|inform|publish|submit|"
        r"write (?:back )?to|write (?:[\w'’.-]+ ){1,3}?(?:an? )?(?:short |quick |brief )?(?:e-?mail|mail|message)|"
        r"write back|let (?!me\b|us\b)[\w'’. -]{1,40} know|get back to|(?:drop|shoot|leave) \S+ an? (?:line|note|"
        r"e-?mail|mail|message|text)|rsvp|reach out|accept|decline|give \S+ a (?:heads[- ]up|shout)|"
        r"pass (?:.{1,60} )?(?:on|along) to|pass (?:it|this|that) on|fire off|loop in|apologi[sz]e to|"
        r"confirm (?:.{1,60} )?(?:to|with)|say .{1,60} to|write \S+ (?:that|saying|about|and say|to say|to ask)|"
        r"write (?:him|her|them)\b|write (?!(?:an?|the|my|our|it|this|that|some|me|us|all|down|out|up|about|in|on|"
        r"for)\b)"
        r"[\w'’.-]+,? (?:i|we|i'm|im|i'll|we'll|yes|no|ok|okay|thanks|sorry|happy)\b|say (?:yes|no|ok|okay|sure|thanks|"
        r"thank you|sorry|hi|hello|congrat\w*)\b|inquire|enquire|have (?:the|my|our|this|that|it) .{0,60}(?:sent|"
        r"forwarded|e?mailed)|update (?!me\b|"
        r"us\b)\S+ (?:on|about)|"
        r"report (?:back )?to|wish",
        "create": r"create|generate|compose|prepare|jot|put together|set up|produce|write|draw up|type up|make|add|"
        r"take (?:a )?(?:notes?|screenshots?|pictures?|photos?)|save|store|keep track|start a|"
        r"summari[sz]e (?:.{1,80} )?(?:into|to|as)|turn .{1,80} into|extract|compile|gather|outline|i(?:'d like| need|"
        r" want) (?:a|an|another)|(?:give|get|make) me (?:a|an|another|some) (?:to-?dos?|reminders?|event|"
        r"calendar entry)|(?:give|get|make|leave) me .{1,60} (?:as|in) an? (?:note|file|todo|list|event|draft)|"
        r"write (?:[\w'’]+ )?down|should (?:go|be) (?:in|on|into|onto)",
        "update": r"update|change|edit|modify|rename|move|replace|correct|fix|archive|unarchive|restore|adjust|assign|"
        r"append|insert|rewrite|overwrite|postpone|reschedule|shift|organi[sz]e|sort|tidy|add|(?:check|tick|"
        r"cross) (?:\w+ )?off|tick|complete|reopen|extend|convert|shorten|expand|improve|polish|revise|reformat|amend|"
        r"adapt|rephrase|proofread|tweak|clean up|swap|bring forward|push back|delay|increase|decrease|"
        r"combine|split|pin|unstar|make (?:it|that|this|them)|"
        r"(?:get|take|move|keep) .{1,60} out of (?:my|the) (?:inbox|mailbox|way)",
        "delete": r"delete|remove|erase|trash|purge|unsubscribe|unfollow|get rid of|discard|"
        r"throw (?:[\w'’]+ ){0,3}away|(?:send|move|put|throw) .{1,60} (?:to|in|into) the (?:trash|bin)|forget|wipe|"
        r"scrap|uninvite|take [\w'’ -]{1,40} off|call off|cancel|ditch|dump|"
        r"clear out",
        "schedule": r"reschedule|remind me|set (?:me )?(?:up )?(?:a|an|the|another) (?:[\w-]+ ){0,3}?(?:reminder|"
        r"alarm|meeting|event|appointment|call)|pencil in|"
        r"put (?:[\w'’-]+ ){1,8}?(?:in|on|into) (?:my|the|our) cal[ae]nd[ae]r",
        "remember": r"remember|memori[sz]e|keep in mind|learn that|don't forget that",
        "transfer": r"download|upload|install|export|import|back up|save|store|attach",
        "pay": r"pay|purchase|buy|donate|wire|transfer",
        "run": r"run|execute|launch|compute|calculate|rerun|simulate|benchmark|use (?:python|bash|node|code|a script)|"
        r"analy[sz]e|plot|install",
        "control": r"turn (?:[\w'’]+ ){0,4}?(?:on|off|up|down)|switch|enable|disable|activate|deactivate|follow|"
        r"unfollow|subscribe|unsubscribe|mute|unmute|call me|call yourself|from now on|be (?:more|less)|rename|change|"
        r"set|stop|restart|block|propose",
    },
    placed={
        "send": r"e-?mail(?!s\b)|mail(?!s\b|box)|message(?!s\b)|text(?! messages?| file)|post|tell(?! me| us)|"
        r"answer(?! me| us)|ask(?! me| us)|dm|ping|cc|bcc|tweet|thank|congratulate|remind(?! me| us)|"
        r"suggest(?! me| us)|offer(?! me| us)|"
        r"recommend .{1,60} to",
        "create": r"draft|build|start|note|record|log|copy|list|sketch|document|put|keep|collect|enter|stick|pop|slot",
        "update": r"mark|label|copy|star|tag|set|put|flag|finish|file|close|sort|merge|bump",
        "delete": r"clear|empty|drop|clean|bin|void",
        "schedule": r"schedule(?! for\b| on\b)|book|block",
        "transfer": r"fetch|get|grab|copy",
        "pay": r"order|book|tip",
        "run": r"start|test|script|process|try",
        "control": r"filter|start|route|forward",
    },
)

GERMAN: Final = Imperatives(
    marks="der die das den dem ein eine einen und zu von im ist mir mein meine für mit auf an bitte ich es nicht",
    plain={
        "send": r"sende|senden|schick|schicke|schicken|verschick\w*|antworte|antworten|beantworte|beantworten|"
        r"leite .{1,80} weiter|weiterleiten|lade .{1,80} ein|einladen|teile? .{1,80} mit|mitteilen|informiere|"
        r"benachrichtige\w*|veröffentliche\w*|maile|poste|schreib(?:e|en)? (?:.{1,60} )?(?:e-?mail|mail|nachricht|an)|"
        r"gib .{1,60} bescheid|sage? (?!mir|uns)\w+ .{0,40}(?:dass|bescheid|zu\b)|sage? (?!(?:mir|uns|mal|den|das|die|"
        r"doch|einfach|alle\w*|meine\w*|unsere\w*)\b)(?!.{1,80}\bab\b)[\w-]+ \w+|teile|schreib(?:e|en)? (?!(?:mir|uns|"
        r"es|das|"
        r"die|den|ein\w*|auf|alle\w*)\b)[\w-]+(?: [\w()-]+){0,3},? (?:dass|ob|zurück|wegen|kurz|wie|wann)|"
        r"frage? (?!mich|uns)[\w-]+(?: [\w-]+)?,? (?:ob|wann|wie|nach|wo|was)",
        "create": r"erstell\w*|lege? .{0,80} (?:an|ab)|anlegen|füge? .{0,80} hinzu|hinzufügen|richte .{0,80} ein|"
        r"einrichten|schreib(?:e|en)?|mach(?:e|en)?|erzeug\w*|verfass\w*|entwirf|entwerfen|speicher(?:e|n)?|notier(?:e|"
        r"en)?|"
        r"halte? .{1,60} fest|setze?n?|ich (?:brauche|möchte|will) eine?n?|fass\w* .{1,80} zusammen in",
        "update": r"aktualisier\w*|änder(?:e|n)?|ändere?|benenne?n?|umbenennen|verschieb(?:e|en)?|bearbeite\w*|"
        r"ersetze?n?|kopier(?:e|en)?|markier(?:e|en)?|archivier\w*|hak(?:e)? .{0,60} ab|abhaken|ergänz\w*|"
        r"füge? .{0,80} hinzu|räum(?:e)? .{0,60} auf|kürze?n?|überarbeite\w*|verbesser\w*|korrigier\w*|sortier\w*|"
        r"trag(?:e)? .{0,60} (?:ein|um)|verleg(?:e|en)?|leg(?:e)? .{1,60} (?:auf|in|unter|zu)\b|"
        r"pack(?:e)? .{1,60} (?:in|auf)\b|umbuchen|setz(?:e)? .{1,60} auf|"
        r"pack(?:e)?",
        "delete": r"lösch(?:e|en)?|entfern(?:e|en)?|stornier\w*|sage? .{1,80} ab|absagen|vergiss|leere?n?|"
        r"wirf .{1,60} weg",
        "schedule": r"plane?n?|buche?n?|trage? .{1,80} ein|eintragen|erinnere|vereinbar\w*",
        "remember": r"merke? dir|merken|behalte",
        "transfer": r"lade? .{1,80} (?:herunter|runter|hoch)|herunterladen|hochladen|installier\w*|exportier\w*|"
        r"importier\w*|speicher(?:e|n)?",
        "pay": r"bezahl\w*|überweis\w*|bestell(?:e|en)?|kaufe?n?",
        "run": r"führ(?:e)? .{1,80} aus|ausführen|starte?n?|berechne\w*|rechne|analysier\w*",
        "control": r"schalte?n?|aktivier\w*|deaktivier\w*|stoppe?n?|abonnier\w*|nenn mich|ab jetzt|folge|ändere?",
    },
    placed={},
)

FRENCH: Final = Imperatives(
    marks="le la les un une des de du à et mon ma mes moi pour dans au aux avec est ce cette que je tu pas",
    plain={
        "send": r"envoie|envoies|envoyer|envoyez|transmets|transmettre|transfère|transférer|réponds|répondre|répondez|"
        r"publie|publier|partage|partager|invite|inviter|préviens|prévenir|informe|informer|écris(?:-lui|-leur)? à|"
        r"écris-(?:lui|leur)|écrire à|dis(?:-lui|-leur)? à|dis-(?:lui|leur)|demande(?:-lui|-leur)? à|"
        r"(?:envoie|réponds|transmets|transfère)-(?:lui|leur|le|la|les)",
        "create": r"résume .{1,80} dans|crée|créer|créez|ajoute|ajouter|ajoutez|rédige|rédiger|écris|écrire|génère|"
        r"prépare|préparer|fais|"
        r"enregistre|enregistrer|sauvegarde|sauvegarder|note|noter|mets|mettre",
        "update": r"modifie|modifier|renomme|renommer|déplace|déplacer|change|changer|mets|mettre|corrige|corriger|"
        r"raccourcis|améliore|décale|décaler|avance|avancer|repousse|reporte|"
        r"archive|archiver|marque|marquer|remplace|remplacer|ajoute|ajouter|range|coche|copie|copier",
        "delete": r"supprime|supprimer|supprimez|efface|effacer|annule|annuler|retire|retirer|oublie|vide|vider",
        "schedule": r"planifie|planifier|programme|programmer|réserve|réserver|rappelle(?:-le)?-moi|décale|reporte",
        "remember": r"mémorise|mémoriser|retiens|retenir|souviens-toi|rappelle-toi|n'oublie pas que",
        "transfer": r"télécharge|télécharger|installe|installer|importe|importer|exporte|exporter|enregistre",
        "pay": r"paie|paye|payer|commande|commander|achète|acheter",
        "run": r"exécute|exécuter|lance|lancer|calcule|calculer|analyse|analyser",
        "control": r"active|activer|désactive|désactiver|abonne|arrête|appelle-moi|désormais|change",
    },
    placed={},
)

SPANISH: Final = Imperatives(
    marks="el la los las un una de del y a mi mis para en con es este esta que por lo le yo al",
    plain={
        "send": r"env[ií]a(?:le|les|r|selo|me)?|envíe|manda(?:le|les|r)?|mánda(?:le|les|selo)|responde(?:le|les|r)?|"
        r"respónde(?:le|les)|contesta(?:le|r)?|contésta(?:le|les)|reenv[ií]a(?:le|r)?|comparte|compartir|publica|"
        r"publicar|invita|invitar|avisa(?:le|r)?|avísa(?:le|les)|escríbe(?:le|les|sel[oa]s?)|díse(?:l[oa]s?)|dile|"
        r"diles|pregúnta(?:le|les)|"
        r"envía(?:sel[oa]s?|l[oa]s?)|mánda(?:sel[oa]s?|l[oa]s?)|reenvía(?:sel[oa]s?|l[oa]s?)",
        "create": r"resume .{1,80} en|crea|crear|añade|añadir|agrega|agregar|redacta|redactar|escribe|escribir|"
        r"genera|prepara|haz|guarda|guárda(?:me|mel[oa]s?|l[oa]s?)|guardar|an[oó]ta(?:me|l[oa]s?)?|anotar|"
        r"ap[uú]nta(?:me|l[oa]s?)?|p[oó]n(?:me|l[oa]s?)?|"
        r"a[ñn][aá]de(?:l[oa]s?|me)|cr[eé]a(?:me|l[oa]s?)|haz(?:me|l[oa]s?)|prep[aá]ra(?:me|l[oa]s?)",
        "update": r"actualiza|actualizar|modifica|modificar|cambia|cambiar|mueve|mover|renombra|renombrar|marca|marcar|"
        r"archiva|archivar|corrige|acorta|mejora|reemplaza|añade|copia|copiar|ordena",
        "delete": r"elim[ií]na(?:l[oa]s?)?|eliminar|b[oó]rra(?:l[oa]s?)?|borrar|canc[eé]la(?:l[oa]s?)?|cancelar|"
        r"qu[ií]ta(?:l[oa]s?)?|quitar|olvida|vacía|vaciar",
        "schedule": r"programa|programar|reserva|reservar|agenda|agendar|recuérda(?:me|mel[oa])|planifica",
        "remember": r"recuerda|memoriza|acuérdate",
        "transfer": r"descarga|descargar|sube|instala|instalar|importa|importar|exporta|exportar|guarda",
        "pay": r"paga|pagar|compra|comprar|pide",
        "run": r"ejecuta|ejecutar|calcula|calcular|analiza|analizar",
        "control": r"activa|activar|desactiva|desactivar|suscribe|suscríbete|llámame|a partir de ahora|cambia",
    },
    placed={},
)

POLISH: Final = Imperatives(
    marks="i w na do z ze mi mój moje moją to jest dla od się o po tę ten ta nie jutro",
    plain={
        "send": r"wyślij|wysłać|odpisz|odpisać|odpowiedz|prześlij|przesłać|przekaż|opublikuj|zaproś|udostępnij|"
        r"napisz (?:do|maila|wiadomość)|powiadom|daj znać",
        "create": r"utwórz|stwórz|dodaj|dopisz|dorzuć|napisz|przygotuj|zrób|wygeneruj|zapisz|zanotuj|wpisz",
        "update": r"zaktualizuj|zmień|przenieś|popraw|oznacz|skróć|zarchiwizuj|dodaj|dopisz|odhacz|skopiuj|"
        r"uporządkuj|przełóż|przesuń",
        "delete": r"usuń|usunąć|skasuj|odwołaj|zapomnij|wyczyść|wyrzuć|anuluj",
        "schedule": r"zaplanuj|zarezerwuj|przypomnij|umów",
        "remember": r"zapamiętaj",
        "transfer": r"pobierz|zainstaluj|ściągnij|wyeksportuj|zaimportuj|zapisz",
        "pay": r"zapłać|kup|zamów",
        "run": r"uruchom|wykonaj|oblicz|policz|przeanalizuj",
        "control": r"włącz|wyłącz|aktywuj|subskrybuj|mów do mnie|od teraz|zmień",
    },
    placed={},
)

IMPERATIVES: Final = (ENGLISH, GERMAN, FRENCH, SPANISH, POLISH)
