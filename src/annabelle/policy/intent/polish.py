"""How orders are given in Polish."""

from __future__ import annotations

from typing import Final

from annabelle.policy.intent.forms import polish, spoken

POLISH: Final = spoken(
    marks="i w we na do z ze mi mnie mój moja moje moją moich mojego mojej to ten ta tę tego tej te jest są dla od "
    "się o po "
    "nie tak czy że żeby jeśli jak co kto kiedy już też potem teraz proszę dzięki możesz mógłbyś jutro dziś piątek "
    "poniedziałek dodaj zapisz wyślij odpisz usuń napisz zrób przenieś sprawdź przeczytaj mu jej im go ją je mail "
    "maila notatkę listę plik chcę",
    before="i|a|oraz|potem|też|teraz|następnie|proszę|ok|okay|hej|cześć|tak|dzięki|no|to|wtedy|annabelle",
    condition=r"(?:jeśli|jeżeli|jak|gdy) [^,;?]{3,60}? (?:jest|są|ma|będzie|pasuje)(?: \w+){0,2}",
    forms={
        "send": polish(
            "wyślij/wysłać odpisz/odpisać prześlij/przesłać przekaż/przekazać opublikuj/opublikować "
            "zaproś/zaprosić udostępnij/udostępnić powiadom/powiadomić poinformuj/poinformować "
            "podziękuj/podziękować zapytaj/zapytać spytaj/spytać potwierdź/potwierdzić ślij podeślij/podesłać "
            "przekieruj/przekierować zawiadom/zawiadomić",
            r"podziel się|napisz (?:do|maila|mail|wiadomość)|napisać (?:do|maila|mail|wiadomość)|daj(?: \w+)? znać|"
            r"dać(?: \w+)? znać|"
            r"napisz (?!mi\b|to\b|nam\b|notatk)\w+,? (?:że|czy|maila|wiadomość|żeby)|napisać (?!mi\b|to\b)\w+,? "
            r"(?:że|czy)|odpowiedz(?! od\b)|odpowiedzieć|powiedz (?!mi\b|nam\b)\w+",
        ),
        "create": polish(
            "utwórz/utworzyć stwórz/stworzyć dodaj/dodać dopisz/dopisać dorzuć/dorzucić napisz/napisać "
            "przygotuj/przygotować zrób/zrobić wygeneruj/wygenerować zapisz/zapisać zanotuj/zanotować wpisz/wpisać "
            "wrzuć/wrzucić wstaw/wstawić umieść/umieścić załóż/założyć sporządź/sporządzić spisz/spisać "
            "zachowaj/zachować",
            r"(?:nowa|nowe|nowy|nową) (?:notatka|zadanie|wydarzenie|spotkanie|notatkę)|chcę notatkę",
        ),
        "update": polish(
            "zaktualizuj/zaktualizować zmień/zmienić przenieś/przenieść popraw/poprawić oznacz/oznaczyć skróć/skrócić "
            "zarchiwizuj/zarchiwizować dodaj/dodać dopisz/dopisać odhacz/odhaczyć skopiuj/skopiować "
            "uporządkuj/uporządkować "
            "przełóż/przełożyć przesuń/przesunąć wrzuć/wrzucić edytuj/edytować zamień/zamienić uzupełnij/uzupełnić "
            "skreśl/skreślić odznacz/odznaczyć zaznacz/zaznaczyć opóźnij/opóźnić przyspiesz/przyspieszyć "
            "posortuj/posortować przestaw/przestawić nadaj/nadać zaplanuj/zaplanować przemianuj/przemianować",
        ),
        "delete": polish(
            "usuń/usunąć skasuj/skasować odwołaj/odwołać zapomnij/zapomnieć wyczyść/wyczyścić wyrzuć/wyrzucić "
            "anuluj/anulować wywal/wywalić skreśl/skreślić wykreśl/wykreślić opróżnij/opróżnić zdejmij/zdjąć "
            "wypisz/wypisać wykasuj/wykasować",
            r"pozbądź się",
        ),
        "schedule": polish(
            "zaplanuj/zaplanować zarezerwuj/zarezerwować przypomnij/przypomnieć umów/umówić zablokuj/zablokować "
            "ustaw/ustawić"
        ),
        "remember": polish("zapamiętaj/zapamiętać", r"pamiętaj,? że|miej na uwadze|nie zapomnij,? że"),
        "transfer": polish(
            "pobierz/pobrać zainstaluj/zainstalować ściągnij/ściągnąć wyeksportuj/wyeksportować "
            "zaimportuj/zaimportować zapisz/zapisać załącz/załączyć"
        ),
        "pay": polish("zapłać/zapłacić kup/kupić zamów/zamówić przelej/przelać opłać/opłacić"),
        "run": polish("uruchom/uruchomić wykonaj/wykonać oblicz/obliczyć policz/policzyć przeanalizuj/przeanalizować"),
        "control": polish(
            "włącz/włączyć wyłącz/wyłączyć aktywuj/aktywować subskrybuj/subskrybować zmień/zmienić zablokuj/zablokować "
            "wycisz/wyciszyć",
            r"mów do mnie|od teraz",
        ),
    },
)
