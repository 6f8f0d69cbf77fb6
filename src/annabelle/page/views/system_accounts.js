// Accounts: what is connected, a form for mailboxes, and the command for what needs a terminal.
import { get, post } from "../api.js";
import { ask, askUntilDone, badge, button, codeBlock, h, replace, toast } from "../dom.js";

const TITLES = { google: "Google: mail and calendar", mail: "A mailbox, with its calendar", telegram: "Your own Telegram account" };
const STATES = { connected: ["connected", "good"], missing: ["not connected", ""], damaged: ["its file cannot be read", "bad"] };
const FIELDS = [
  { name: "address", label: "Mail address", kind: "email", required: true },
  { name: "password", label: "Password", kind: "password", required: true, hint: "Many providers want an app password. It stays in the home, and is never shown." },
  { name: "username", label: "User name", hint: "By default the address." },
  { name: "imap", label: "Server to read from (IMAP), as host:port", hint: "Most providers are known: leave the rest empty." },
  { name: "smtp", label: "Server to send with (SMTP), as host:port" },
  { name: "security", label: "Encryption", kind: "select", options: [{ value: "", label: "as the ports say" }, "tls", "starttls", "none"] },
  { name: "caldav", label: "Address of the calendar (CalDAV)" },
];

export async function show(root) {
  const draw = async () => {
    const { accounts } = await get("/accounts");
    replace(root, h("h2", {}, "Accounts"), h("p", {}, "Annabelle works with an account once it is connected. Each is kept in a file that only you can read."), accounts.map((one) => accountCard(one, draw)));
  };
  await draw();
}

function accountCard(one, redraw) {
  const there = one.state !== "missing";
  const options = { yes: "Try it and keep it", text: "Its servers are tried first." };
  const connect = () =>
    askUntilDone("Connect a mailbox", FIELDS, options, async (given) => {
      const body = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, value.trim() || null]));
      const made = await post("/accounts/mail", { ...body, password: given.password });
      toast(`Connected to the mailbox ${made.account}.${made.withoutCalendar ? ` Without a calendar: ${made.withoutCalendar}` : ""}`);
      await redraw();
    });
  const remove = async () => {
    if (!(await ask(`Forget the mailbox ${one.account ?? ""}?`, [], { yes: "Forget it", danger: true, text: "If you made an app password for Annabelle, delete it at your mail provider." }))) return;
    await post("/accounts/mail/remove");
    await redraw();
  };
  const form = h("div", { className: "row" }, button(there ? "Connect another" : "Connect a mailbox", connect), there && button("Forget it", remove, { className: "danger" }));
  const words = [h("p", {}, there ? "To connect it again, or to forget it, type in a terminal" : "It is connected in a terminal:"), codeBlock(there ? `${one.command}\nannabelle connect remove ${one.kind}` : one.command)];
  return h("section", { className: "card", data: { account: one.kind } }, h("h3", {}, TITLES[one.kind], " ", badge(...STATES[one.state])), one.account && h("p", {}, one.account), one.kind === "mail" ? form : words);
}
