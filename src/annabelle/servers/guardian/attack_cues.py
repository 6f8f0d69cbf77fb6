"""Finds the attack patterns that occur in a text, in English and other languages. None decides alone: each is a cue for
the classifier.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from annabelle.core.trust import ThreatType
from annabelle.servers.guardian.aim_patterns import AIMS
from annabelle.servers.guardian.order_patterns import ORDERS, SERVING, PhrasePattern, make_pattern

_OVERRIDE: Final = (
    # German
    r"\b(?:ignorier\w*|vergiss|vergessen sie|missachte\w*|übergeh\w*|verwirf|"
    r"überschreib\w*)\b.{0,60}\b(?:anweisung\w*|instruktion\w*|"
    r"befehl\w*|vorgaben|regeln|richtlinien|aufforderung\w*|prompts?|kontext)",
    # French
    r"\b(?:ignore[rz]?|oublie[rz]?|néglige[rz]?|ne tiens pas compte|ne tenez pas compte|faites abstraction)\b.{0,60}"
    r"\b(?:instructions?|consignes?|directives?|ordres|règles|messages? précédent\w*|contexte)",
    # Spanish, Portuguese
    r"\b(?:ignor[aeo]\w*|olvid[ae]\w*|descart[ae]\w*|haz caso omiso|haga caso omiso|desconsider[ae]\w*|esque[çc]\w*|"
    r"desobede[cz]\w*)\b.{0,60}"
    r"\b(?:instruc\w+|instruç\w+|órdenes|ordens|reglas|regras|directrices|diretrizes|indicaciones|mensaje\w* "
    r"anterior\w*|contexto|comandos)",
    # Italian
    r"\b(?:ignora\w*|dimentica\w*|trascura\w*|non considerare|scarta)\b.{0,60}\b(?:istruzioni|indicazioni|ordini|"
    r"regole|direttive|comandi|"
    r"messaggi precedent\w*|contesto)",
    # Polish, Czech
    r"\b(?:zignoruj\w*|ignoruj\w*|zapomnij\w*|pomiń\w*|pomijaj|nie zważaj|odrzuć)\b.{0,60}\b(?:instrukcj\w*|"
    r"poleceni\w*|polece[nń]|wytyczn\w*|zasad\w*|"
    r"reguł\w*|instrukce|pokyny|kontekst\w*)",
    # Dutch, Swedish, Danish, Norwegian
    r"\b(?:negeer|vergeet|ignorera|glöm|ignorer|glem|sla .{0,20}over)\b.{0,60}\b(?:instructies?|opdrachten|"
    r"aanwijzingen|regels|"
    r"instruktion\w*|anvisning\w*|regler|instruks\w*)",
    # Russian, Ukrainian
    r"(?:игнорир\w*|проигнорир\w*|забуд\w*|не обращай\w*|отбрось\w*|ігноруй\w*|забудь\w*)\b.{0,60}(?:инструкц\w*|"
    r"указани\w*|команд\w*|правил\w*|"
    r"предыдущ\w*|распоряжени\w*|інструкц\w*|вказівк\w*)",
    # Turkish
    r"\b(?:önceki|yukarıdaki|tüm|bütün)\b.{0,40}\b(?:talimat\w*|"
    r"komut\w*|kural\w*|yönerge\w*)\b.{0,30}\b(?:yok say\w*|"
    r"görmezden gel\w*|unut\w*|dikkate alma\w*)",
    # Chinese
    r"(?:忽略|无视|忘记|忘掉|不要理会|無視|忽視|抛弃|覆盖).{0,15}(?:指令|"
    r"指示|说明|命令|规则|提示|要求|內容|内容|設定|设定|規則)",
    # Japanese
    r"(?:指示|命令|ルール|プロンプト|指令|設定).{0,12}(?:無視|忘れ|"
    r"破棄|従わない)|(?:無視|忘れ).{0,12}(?:指示|命令|ルール)",
    # Korean
    r"(?:지시|명령|지침|규칙|프롬프트).{0,15}(?:무시|잊어|잊으)",
    # Arabic, Persian, Hebrew, Hindi
    r"(?:تجاهل|انس|تجاوز|لا تتبع|نادیده بگیر).{0,40}(?:تعليمات|التعليمات|أوامر|الأوامر|القواعد|دستور)",
    r"(?:התעלם|התעלמי|שכח).{0,40}(?:הוראות|ההוראות|כללים)|"
    r"(?:निर्देश|आदेश|नियम).{0,30}(?:अनदेखा|भूल|नज़रअंदाज़|अनदेखी)",
    # Vietnamese, Indonesian, Romanian, Hungarian
    r"\b(?:bỏ qua|phớt lờ|quên)\b.{0,40}(?:hướng dẫn|chỉ dẫn|lệnh|quy tắc)|\b(?:abaikan|"
    r"lupakan)\b.{0,40}\b(?:instruksi|perintah|aturan|petunjuk)",
    r"\b(?:ignoră|ignorați|uită)\b.{0,60}\b(?:instrucțiun\w*|"
    r"comenzi\w*|regul\w*)|\b(?:hagyd figyelmen kívül|felejtsd "
    r"el)\b.{0,60}(?:utasítás\w*|szabály\w*)",
)
_NEW_SELF: Final = (
    r"\b(?:du bist (?:jetzt|nun|ab sofort)|sie sind (?:jetzt|nun)|ab (?:jetzt|sofort) (?:bist|sind|wirst|antworte)|"
    r"verhalte dich|tu so, als)\b",
    r"\b(?:tu es (?:maintenant|désormais)|vous êtes (?:maintenant|désormais)|à partir de maintenant|désormais,? tu|"
    r"fais semblant|agis comme)\b",
    r"\b(?:ahora eres|a partir de ahora|de ahora en adelante|finge (?:ser|que)|actúa como|agora você é|a partir de "
    r"agora|finja|aja como)\b",
    r"\b(?:ora sei|d'ora in poi|da ora in poi|fingi di|comportati come|je bent nu|vanaf nu|doe alsof|od teraz|jesteś "
    r"teraz|udawaj,? że)\b",
    r"(?:теперь ты|с этого момента|отныне|притворись|веди себя как|"
    r"представь,? что ты|你现在是|从现在起|从现在开始|假装你|扮演|あなたは今から|"
    r"これからあなたは|今からあなた|のふりをして|أنت الآن|من الآن فصاعدا|تظاهر|당신은 이제|지금부터)",
)
_SEND: Final = (
    r"\b(?:schick\w*|senden?|leiten?|überweis\w*|übermittl\w*|teile mir|gib mir)\b.{0,80}\b(?:passw\w+|zugangsdaten|"
    r"kennw\w+|geheim\w*|konto\w*|schlüssel|an\s\S+@\S+)",
    r"\b(?:envoie\w*|envoyez|transfère\w*|transférez|transmet\w*|partage[rz]?|divulgue\w*)\b.{0,80}\b(?:mots? de "
    r"passe|identifiants|clés?|secrets?|données|fichiers|à\s\S+@\S+)",
    r"\b(?:env[ií][ae]\w*|manda\w*|reenv[ií]a\w*|transfier\w*|compart[ea]\w*|revel[ae]\w*|encaminh[ae]\w*)\b.{0,80}"
    r"\b(?:contraseñas?|senhas?|claves?|chaves?|credencia\w*|secretos?|segredos?|datos|dados|archivos|arquivos|"
    r"a\s\S+@\S+|para\s\S+@\S+)",
    r"\b(?:invia\w*|inoltra\w*|trasferisci\w*|condividi\w*|rivela\w*|stuur\w*|verzend\w*|wyślij\w*|prześlij\w*|"
    r"przekaż\w*|ujawnij\w*)\b.{0,80}"
    r"\b(?:password|credenziali|chiavi?|segret\w*|dati|file|wachtwoord\w*|sleutel\w*|gegevens|bestanden|hasł\w*|"
    r"klucz\w*|dane|danych|plik\w*|\S+@\S+)",
    r"(?:отправь\w*|пришли\w*|перешли\w*|передай\w*|переведи\w*|раскрой\w*).{0,80}(?:парол\w*|ключ\w*|секрет\w*|"
    r"данн\w*|файл\w*|деньги|учетн\w*|\S+@\S+)",
    r"(?:发送|转发|上传|泄露|告诉我|发给|转账|寄给|送信|転送|送って|教えて|아[려]|보내|전송|"
    r"أرسل|ارسل|حول).{0,40}(?:密码|密钥|口令|凭证|隐私|数据|文件|密碼|資料|"
    r"パスワード|鍵|機密|データ|ファイル|비밀번호|데이터|파일|كلمة المرور|"
    r"كلمات المرور|البيانات|الملفات|المفتاح|\S+@\S+)",
)
_SECRECY: Final = (
    r"\b(?:sag(?:e|en sie)?|erwähn\w*|informier\w*|verrat\w*|teil\w*)\b.{0,40}\b(?:nicht|niemand\w*|"
    r"nichts)\b.{0,30}(?:nutzer\w*|benutzer\w*|anwender\w*|davon|mit)?"
    r"|\bohne (?:den|dem|die) (?:be)?nutzer\b",
    r"\b(?:ne (?:dis|dites|mentionne\w*|préviens|prévenez|révèle\w*|parle\w*)|n'informe\w*)\b.{0,40}\b(?:pas|rien|"
    r"jamais)\b",
    r"\bno (?:le |se lo )?(?:digas|diga|menciones|mencione|informes|informe|reveles|avises)\b|\bnão (?:diga|mencione|"
    r"informe|revele|avise|conte)\b",
    r"\bnon (?:dire|dirlo|menzionare|informare|rivelare|avvisare)\b|\b(?:vertel|zeg|meld)\b.{0,30}\bniet\b|\bnie "
    r"(?:mów|wspominaj|informuj|ujawniaj|powiadamiaj)\b",
    r"(?:не (?:говори\w*|сообщай\w*|упоминай\w*|раскрывай\w*|"
    r"рассказывай\w*)|不要告诉|别告诉|不要提及|不得告知|不要让用户|に言わない|に知らせ(?:ない|"
    r"ず)|"
    r"言及しない|لا تخبر|لا تذكر|دون إخبار|알리지|말하지)",
)

FOREIGN: Final[tuple[tuple[str, ThreatType, str, tuple[str, ...]], ...]] = (
    (
        "override_foreign",
        "prompt_injection",
        "ignor|verg|missacht|überg|verwirf|überschreib|oubli|néglig|ne ten|ne tien|abstraction|olvid|descart|caso "
        "omiso|desconsider|esque|"
        "desobed|dimentic|trascur|non consid|scarta|zapomn|pomi|zważ|odrzuć|negeer|glöm|glem|sla |игнор|забуд|не "
        "обращ|отбрось|ігнор|"
        "yok say|görmezden|unut|dikkate|忽|无视|忘|不要理|無視|抛弃|覆盖|破棄|"
        "従わない|무시|잊|تجاهل|انس|تجاوز|لا تتبع|نادیده|התעל|שכח|अनद|"
        "भूल|नज़र|bỏ qua|phớt|"
        "quên|abaikan|lupakan|uită|hagyd|felejtsd",
        _OVERRIDE,
    ),
    (
        "new_self_foreign",
        "jailbreak",
        "du bist|sie sind|ab jetzt|ab sofort|verhalte|tu so|tu es|vous êtes|à partir|désormais|fais semblant|agis|"
        "ahora|finge|actúa|agora|finja|"
        "aja como|ora sei|in poi|fingi|comportati|je bent|vanaf|doe als|od teraz|jesteś|udawaj|теперь|момента|отныне|"
        "притвор|веди себя|представь|"
        "你现在|从现在|假装|扮演|今から|これから|ふりをして|الآن|تظاهر|당신은|지금부터",
        _NEW_SELF,
    ),
    (
        "send_foreign",
        "data_exfiltration",
        "schick|=sende|=senden|=leite|=leiten|überweis|übermitt|=teile|gib mir|=envoie|=envoyez|transfèr|transfér|"
        "transmet|"
        "partage|divulg|=envía|=envia|=envíe|=envie|=enviar|=manda|=mande|reenv|transfier|=comparte|=compartilhe|=revela|"
        "encaminh|=invia|inoltra|trasferisc|condivid|rivela|=stuur|verzend|wyślij|prześlij|przekaż|ujawnij|отправ|пришли|"
        "перешли|передай|переведи|раскрой|发|转|上传|泄|告诉|寄|送|転|教えて|보내|전송|أرسل|ارسل|حول",
        _SEND,
    ),
    (
        "secrecy_foreign",
        "prompt_injection",
        "=nicht|=niemandem|=niemanden|=nichts|=ohne|=pas|=rien|=jamais|=digas|=diga|=menciones|=mencione|=informes|=informe|"
        "=reveles|=revele|=avises|=avise|=conte|=dire|=dirlo|=menzionare|=informare|=rivelare|=avvisare|=niet|=mów|=wspominaj|"
        "=informuj|=ujawniaj|=powiadamiaj|не говор|не сообща|не упомина|не раскрыва|не рассказыва|"
        "不要|别告诉|不得|に言わ|"
        "知らせ|言及しない|لا تخبر|لا تذكر|دون إخبار|알리지|말하지",
        _SECRECY,
    ),
)


PATTERNS: Final[tuple[PhrasePattern, ...]] = (
    *ORDERS,
    *AIMS,
    *(make_pattern(name, kind, signs, *expressions) for name, kind, signs, expressions in FOREIGN),
    *SERVING,
)
"""In the order of the trained weights: a family that is added or moved needs a new training."""


_WORD: Final = re.compile(r"\w+")
_HINT_WORDS: Final = re.compile(
    r"ignor|disregard|forget|overrid|instruction|prompt|assistant|password|secret|from now on|you are now|do not tell|"
    r"don't tell|without asking|system:|admin|jailb|anweisung|instrucc|instruç|istruzion|instrukcj|polece|instructie|"
    r"инструкц|парол|passw|passe|contrase|senha|hasł|指令|指示|密码|パスワード|التعليمات|كلم|지시|비밀번호|无视|忽略|無視"
)
CUES: Final = tuple(pattern.name for pattern in PATTERNS)


@dataclass(frozen=True, slots=True)
class Cue:
    """A phrase that was found: the number of its family, its kind, and where it is."""

    family: int
    kind: ThreatType
    start: int
    words: str


def find_cues(text: str) -> list[Cue]:
    """At most one of each family, the first."""
    low = text.lower()
    words = set(_WORD.findall(low))
    found: list[Cue] = []
    for family, pattern in enumerate(PATTERNS):
        if not pattern.words.isdisjoint(words) or any(sign in low for sign in pattern.signs):
            match = pattern.expression.search(low)
            if match is not None:
                found.append(Cue(family, pattern.kind, match.start(), text[match.start() : match.end()]))
    return found


def find_hints(text: str) -> list[int]:
    """Where words stand that attacks are made of: a hint where to look, not a verdict."""
    return [found.start() for found in _HINT_WORDS.finditer(text.lower())]
