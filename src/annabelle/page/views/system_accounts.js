// Accounts: what is connected, forms for mailboxes and Google, and the command for what needs a terminal.
import { get, post } from "../api.js";
import { ask, askUntilDone, badge, button, codeBlock, describeError, h, replace, toast } from "../dom.js";

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

const CLIENT = [
  { name: "clientId", label: "Client id", hint: "Leave both empty if GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET are set." },
  { name: "clientSecret", label: "Client secret", kind: "password" },
];
const CLIENT_TEXT = "Google wants every install to have a client of its own: make one at console.cloud.google.com (APIs and services, Credentials, OAuth client ID, type desktop app), and enable the Gmail and Calendar APIs there.";

export async function show(root) {
  const draw = async () => {
    const { accounts } = await get("/accounts");
    replace(root, h("h2", "Accounts"), h("p", "Annabelle works with an account once it is connected. Each is kept in a file that only you can read."), accounts.map((one) => accountCard(one, draw)));
  };
  await draw();
}

/** Google: a sign-in in a tab of its own, which comes back to this machine. */
function googleActions(one, redraw) {
  const waiting = h("div", { role: "status" });
  const begin = async (given) => {
    const { url } = await post("/accounts/google", { clientId: given.clientId.trim() || null, clientSecret: given.clientSecret || null });
    const link = h("a", { href: url, target: "_blank", rel: "noopener noreferrer", className: "button primary" }, "Sign in at Google");
    replace(waiting, h("p.row", link, "in a browser on the machine where Annabelle runs. This page waits for it."));
    post("/accounts/google/wait").then(
      (made) => {
        toast(`Connected to Google as ${made.account}.${made.notAllowed.length ? ` Not allowed: ${made.notAllowed.join(", ")}.` : ""}`);
        return redraw();
      },
      (error) => replace(waiting, h("p.problem", describeError(error))),
    );
  };
  const connect = () => askUntilDone("Connect Google", CLIENT, { yes: "Go on", text: CLIENT_TEXT }, begin);
  const remove = async () => {
    if (!(await ask(`Forget the Google account ${one.account ?? ""}?`, [], { yes: "Forget it", danger: true }))) return;
    const { withdrawn } = await post("/accounts/google/remove");
    toast(withdrawn ? "Google has withdrawn the access too." : "Google did not confirm that access is withdrawn; do it at myaccount.google.com/permissions.");
    await redraw();
  };
  const there = one.state !== "missing";
  return [h("div.row", button(there ? "Connect again" : "Connect Google", connect), there && button("Forget it", remove, { className: "danger" })), waiting];
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
  const form = h("div.row", button(there ? "Connect another" : "Connect a mailbox", connect), there && button("Forget it", remove, { className: "danger" }));
  const words = [h("p", there ? "To connect it again, or to forget it, type in a terminal" : "It is connected in a terminal:"), codeBlock(there ? `${one.command}\nannabelle connect remove ${one.kind}` : one.command)];
  return h("section.card", { data: { account: one.kind } }, h("h3", TITLES[one.kind], " ", badge(...STATES[one.state])), one.account && h("p", one.account), { google: googleActions(one, redraw), mail: form }[one.kind] ?? words);
}
