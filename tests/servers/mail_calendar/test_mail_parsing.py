"""What senders make of the rules for mail, and what is read of it."""

from __future__ import annotations

from email.message import EmailMessage

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from annabelle.core.errors import InvalidArguments
from annabelle.core.html_text import html_to_text
from annabelle.servers.kit.charset import decode_text
from annabelle.servers.mail_calendar.mail.headers import (
    decode_header_text,
    format_address,
    parse_addresses,
    parse_recipients,
)
from annabelle.servers.mail_calendar.mail.imap_messages import ImapMessageId, parse_message_id
from annabelle.servers.mail_calendar.mail.invitation import read_invitation
from annabelle.servers.mail_calendar.mail.mailbox import MailBody
from annabelle.servers.mail_calendar.mail.message_parser import extract_body, parse_mail
from annabelle.servers.mail_calendar.mail.outgoing_mail import OutgoingMail, compose_mail, new_message_id
from annabelle.servers.mail_calendar.mail.search_query import parse_query


def content(text: str) -> MailBody:
    return extract_body(parse_mail(text.replace("\n", "\r\n").encode("latin-1")).root)


@pytest.mark.req("SRV-MAI")
@pytest.mark.parametrize(
    ("raw", "read"),
    [
        ("=?utf-8?q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
        ("=?iso-8859-1?Q?Gr=FC=DFe?= =?iso-8859-1?Q?_aus?=", "Grüße aus"),
        ("=?iso-2022-jp?B?GyRCRnxLXBsoQg==?=", "日本"),
        ("=?unknown-charset?q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
        ("=?utf-8?b?broken", "=?utf-8?b?broken"),
        ("a\r\n\tfolded\r\n line", "a folded line"),
        ("with \x00 and \u202e marks", "with and marks"),
    ],
)
def test_headers_are_read_as_people_see_them(raw: str, read: str) -> None:
    assert decode_header_text(raw) == read


@pytest.mark.req("SRV-MAI")
def test_a_name_can_not_smuggle_an_address_in() -> None:
    assert parse_addresses("=?utf-8?q?a=40evil.org=2C_b?= <real@example.org>") == [
        ("a@evil.org, b", "real@example.org")
    ]


@pytest.mark.req("SRV-MAI")
@pytest.mark.parametrize("piece", ["(", ":", "<", '"', "[", "=?utf-8?q?a?= "])
def test_an_address_header_without_end_is_read_as_far_as_it_goes(piece: str) -> None:
    assert len(parse_addresses(piece * 20_000)) <= 500
    with pytest.raises(InvalidArguments):
        parse_recipients(piece * 9_000, "to")


@pytest.mark.req("SRV-MAI")
@given(st.text(max_size=40))
def test_an_address_line_reads_as_the_same_addresses_again(name: str) -> None:
    line = format_address(decode_header_text(name), "real@example.org")
    assert [address for _, address in parse_addresses(line)] == ["real@example.org"]


@pytest.mark.req("SRV-MAI")
@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("Grüße".encode(), "iso-8859-1", "Grüße"),
        ("Grüße".encode("latin-1"), "utf-8", "Grüße"),
        ("Grüße".encode("latin-1"), "no-such-thing", "Grüße"),
        ("日本".encode("iso-2022-jp"), "iso-2022-jp", "日本"),
        ("привет".encode("koi8-r"), "koi8-r", "привет"),
        (b"plain", "rot13", "plain"),
        (b"plain", "zip", "plain"),
        (b"\\ud800 x", "unicode_escape", "\\ud800 x"),
        (b"+2AA-x", "utf-7", "?x"),
    ],
)
def test_text_is_read_also_when_its_label_is_wrong(data: bytes, charset: str, text: str) -> None:
    assert decode_text(data, charset) == text


@pytest.mark.req("SRV-MAI")
def test_plain_text_is_preferred_and_html_is_made_readable() -> None:
    both = content(
        "Content-Type: multipart/alternative; boundary=x\n\n--x\nContent-Type: text/plain\n\nPlain\n--x\n"
        "Content-Type: text/html\n\n<p>Rich</p>\n--x--\n"
    )
    rich = content(
        "Content-Type: text/html; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n"
        "<h1>Gr=FC=DFe</h1><script>alert(1)</script><style>p{}</style><p>See <a href=3D'https://example.org/x'>here</a>"
        "<br>and <img src=3D'https://tracker.example/p.png' alt=3D'logo'></p><div style=3D'display:none'>hidden</div>"
    )
    assert both.text == "Plain"
    assert rich.text == "Grüße\n\nSee here (https://example.org/x)\nand [logo]"


@pytest.mark.req("SRV-MAI")
def test_mails_in_mails_and_odd_files_are_listed() -> None:
    found = content(
        "Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/plain\n\nSee below\n--x\n"
        "Content-Type: message/rfc822\n\nSubject: Inner\nContent-Type: text/plain\n\nInner text\n--x\n"
        "Content-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\nAAEC\n--x\n"
        "Content-Type: application/pdf\nContent-Disposition: attachment;\n filename*0*=utf-8''%C3%9Cber;\n"
        ' filename*1*=sicht.pdf\n\nx\n--x\nContent-Type: text/plain; name="=?utf-8?q?B=C3=A4r=2Etxt?="\n\ny\n--x--\n'
    )
    assert found.text == "See below"
    assert [(one.name, one.content_type) for one in found.attachments] == [
        ("part-2.eml", "message/rfc822"),
        ("winmail.dat", "application/ms-tnef"),
        ("Übersicht.pdf", "application/pdf"),
        ("Bär.txt", "text/plain"),
    ]
    assert [one.size for one in found.attachments][1:3] == [3, 1]


@pytest.mark.req("SRV-MAI")
def test_a_mail_of_endless_parts_stays_small() -> None:
    deep = "".join(f"Content-Type: multipart/mixed; boundary=b{number}\n\n--b{number}\n" for number in range(200))
    wide = "Content-Type: multipart/mixed; boundary=x\n\n" + "--x\n\nhello\n" * 5_000
    assert content(deep + "Content-Type: text/plain\n\nhello").text in ("", "hello")
    assert content(wide).text.count("hello") < 600
    endless = "".join(f"Content-Type: multipart/mixed; boundary=b{number}\n\n--b{number}\n" for number in range(1_500))
    assert parse_mail(b"Subject: Deep\r\n" + endless.encode()).headers.subject == "Deep"


@pytest.mark.req("SRV-MAI")
@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", ["<a href='https://x.example'>x", "</a>", "<![", "<!--", "<!-- -->", "<a b='", "<"])
def test_html_made_to_be_slow_is_read_like_any_other(piece: str) -> None:
    """Each took the parser minutes, because it looked for the end of every piece in all of the rest."""
    assert len(html_to_text(piece * (300_000 // len(piece)))) < 1_000_000


@pytest.mark.req("SRV-MAI")
@pytest.mark.parametrize("data", [b"", b"BEGIN:VCALENDAR", b"\xff\xfe", b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"])
def test_an_invitation_that_is_none_is_left_alone(data: bytes) -> None:
    assert read_invitation(data) is None


@pytest.mark.req("SRV-MAI", "SRV-ALL")
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.sampled_from(
            [
                b"Content-Type: multipart/mixed; boundary=x", b"Content-Type: text/html; charset=", b"\r\n", b"--x",
                b"--x--", b"Content-Transfer-Encoding: base64", b"Content-Transfer-Encoding: quoted-printable",
                b"Content-Type: message/rfc822", b"Subject: =?utf-8?b?", b"From: <<@>,;:", b"Date: 99 Foo 9999",
                b"Content-Disposition: attachment; filename*=", b"Content-Type: text/calendar", b"BEGIN:VEVENT",
                b"References: <a> <b", b"To: \xff\xfe", b"<p><![CDATA[", b"Content-Type: multipart/alternative",
                b"Content-Transfer-Encoding: x-uuencode", b"begin 644 x", b"Content-Type: text/plain; charset=utf-7",
            ]
        )
        | st.binary(max_size=40),
        max_size=30,
    )
)  # fmt: skip
def test_nothing_a_sender_writes_breaks_the_reader(lines: list[bytes]) -> None:
    mail = parse_mail(b"\r\n".join(lines))
    found = extract_body(mail.root)
    assert "\n" not in mail.headers.subject + mail.headers.sender
    assert all(one.attachment_id for one in found.attachments)


@pytest.mark.req("SRV-ALL")
@settings(deadline=None, max_examples=100)
@given(st.text(max_size=200))
def test_no_html_breaks_the_reader(text: str) -> None:
    html_to_text(text)
    html_to_text(f"<div><p>{text}</div></p><a href='{text}'>x</a>")


@pytest.mark.req("SRV-ALL")
@settings(deadline=None, max_examples=100)
@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=200))
def test_what_is_composed_has_no_header_that_nobody_gave(to: str, subject: str, body: str) -> None:
    try:
        outgoing = OutgoingMail.from_arguments(f"bob@example.org,{to}", subject, body, None, None, is_html=False)
    except InvalidArguments:
        return
    mail: EmailMessage = compose_mail(outgoing, "ada@example.com", new_message_id("ada@example.com", None, "t"))
    read = parse_mail(mail.as_bytes())
    assert set(mail.keys()) <= {
        "From", "To", "Subject", "Date", "Message-ID", "Content-Type", "Content-Transfer-Encoding", "MIME-Version",
    }  # fmt: skip
    assert "bob@example.org" in read.headers.to


@pytest.mark.req("SRV-ALL")
@settings(deadline=None, max_examples=150)
@given(st.text(max_size=100))
def test_no_query_address_or_id_breaks_its_reader(text: str) -> None:
    for read in (parse_query, lambda one: parse_recipients(one, "to"), parse_message_id):
        try:
            read(text)
        except InvalidArguments as error:
            assert error.field  # noqa: PT017  either is fine, and nothing else


@pytest.mark.req("SRV-MAI")
@given(st.text(min_size=1, max_size=50), st.integers(0, 2**32 - 1), st.integers(1, 2**32 - 1))
def test_an_id_gives_back_the_place_it_was_made_from(folder: str, validity: int, uid: int) -> None:
    place = ImapMessageId(folder.encode("utf-8", "replace").decode(), validity, uid)
    assert parse_message_id(place.encode()) == place


@pytest.mark.req("SRV-MAI")
def test_addresses_with_foreign_letters_are_written_so_that_all_servers_take_them() -> None:
    (one,) = parse_recipients('"Löwe, Jörg" <joerg@bücher.example>', "to")
    assert (one.display_name, one.addr_spec) == ("Löwe, Jörg", "joerg@xn--bcher-kva.example")
    with pytest.raises(InvalidArguments):
        parse_recipients("jörg@example.org", "to")
