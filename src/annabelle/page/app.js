// The frame of the page: who is here, the views, and the buttons that are always at hand.
import { canKeepSession, followEvents, get, hasKey, on, post, setKey } from "./api.js";
import { ask, badge, button, describeError, h, replace, setTimeZone, toast } from "./dom.js";
import * as chat from "./views/chat.js";
import * as costs from "./views/costs.js";
import * as feed from "./views/feed.js";
import * as goals from "./views/goals.js";
import * as inbox from "./views/inbox.js";
import * as memory from "./views/memory.js";
import * as setup from "./views/setup.js";
import * as skills from "./views/skills.js";
import * as system from "./views/system.js";
import * as traces from "./views/traces.js";

// A view has `render(root, place)`, which may return what is done when the view is left. All are loaded at the start: a browser
// does not fetch a module again that it could not get once, so one that is wanted while the hub is away would never come.
const VIEWS = [
  { name: "chat", render: chat.render, title: "Chat" },
  { name: "inbox", render: inbox.render, title: "Inbox" },
  { name: "goals", render: goals.render, title: "Goals" },
  { name: "feed", render: feed.render, title: "Feed" },
  { name: "skills", render: skills.render, title: "Skills", owner: true },
  { name: "memory", render: memory.render, title: "Memory" },
  { name: "costs", render: costs.render, title: "Costs", owner: true },
  { name: "traces", render: traces.render, title: "Traces", owner: true },
  { name: "system", render: system.render, title: "System", owner: true },
  { name: "setup", render: setup.render, title: "Set up", owner: true, hidden: true },
];

const app = document.getElementById("app");
const main = h("main", { id: "main", tabIndex: -1 });
const status = h("div", { id: "connection", role: "status", hidden: true }, "Annabelle cannot be reached. Trying again …");
let session = null;
let leave = null;
let shown = null;

const BLOCKED = "This browser blocks cookies and site data, which keep you signed in here. Allow them for this address, then";

async function begin() {
  if (!canKeepSession()) return welcome(`${BLOCKED} load this page again.`);
  const code = new URLSearchParams(location.hash.slice(1)).get("link");
  let problem = null;
  try {
    if (code) problem = await redeem(code);
    if (!hasKey()) return welcome(problem);
    session = await get("/sessions/current");
  } catch (error) {
    if (error.status === 0) {
      setTimeout(begin, 1000);
      return replace(app, h("main.welcome", h("h1", "Annabelle"), h("p", { role: "status" }, describeError(error))));
    }
    if (error.status === 401) setKey(null);
    return welcome(problem ?? (code && error.status === 401 ? `${BLOCKED} open a new link.` : describeError(error)));
  }
  setTimeZone(session.timeZone);
  const first = session.owner && !session.setUp && !localStorage.getItem("annabelle-set-up");
  if (first && !location.hash) history.replaceState(null, "", "#/setup");
  frame();
}

/** Signs in, or says why not. Whoever is signed in already stays so. */
async function redeem(code) {
  let problem = null;
  try {
    setKey((await post("/sessions", { code })).key);
  } catch (error) {
    if (error.status === 0) throw error;
    problem = describeError(error);
  }
  history.replaceState(null, "", location.pathname);
  return problem;
}

/** What the address shows without a session. */
function welcome(problem) {
  replace(
    app,
    h(
      "main.welcome",
      { id: "main" },
      h("h1", "Annabelle"),
      problem && h("p.problem", { role: "alert" }, problem),
      h("p", "This page opens with a link that works once. In a terminal on the machine where Annabelle runs, type"),
      h("pre.code", { tabIndex: 0 }, "annabelle open"),
      h("p", "It opens this page in your browser. For a phone or another machine, see docs/page.md."),
    ),
  );
}

function frame() {
  const links = VIEWS.filter((one) => !one.hidden && (!one.owner || session.owner)).map((one) =>
    h("a", { href: `#/${one.name}`, data: { view: one.name } }, one.title, one.name === "inbox" && h("span", { id: "inbox-count", className: "count", hidden: true })),
  );
  const menu = h("nav", { id: "menu", "aria-label": "Views" }, links, button("Sign out", signOut, { className: "quiet" }));
  replace(
    app,
    h(
      "header",
      h("button", { type: "button", id: "menu-button", "aria-label": "Menu", "aria-expanded": "false", "aria-controls": "menu", onclick: () => toggleMenu(menu) }, "☰"),
      h("a", { href: "#/chat", className: "brand" }, "Annabelle"),
      h("a", { href: "#/inbox", className: "count only-phone", hidden: true }),
      menu,
      stopPlace,
    ),
    status,
    main,
  );
  drawStop(session.stopped);
  menu.addEventListener("click", () => toggleMenu(menu, false));
  window.addEventListener("hashchange", show);
  on("lost", () => (status.hidden = false));
  on("back", catchUp);
  on("ended", () => location.reload());
  document.addEventListener("keydown", onKey);
  // The browser would show a file that is dropped here in the place of the page.
  for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
  followEvents((event) => {
    tellView(event);
    if (["approval", "done", "notice", "message"].includes(event.type)) countInbox();
  });
  setInterval(() => document.hidden || countInbox(), 20_000);  // a stop alone is no event of a thread
  countInbox();
  show();
}

/** The hub was away: what happened meanwhile may have come by no event. */
function catchUp() {
  status.hidden = true;
  tellView({ type: "done" });
  countInbox();
}

function tellView(event) {
  window.dispatchEvent(new CustomEvent("annabelle", { detail: event }));
}

function toggleMenu(menu, open = !menu.classList.contains("open")) {
  menu.classList.toggle("open", open);
  document.getElementById("menu-button").setAttribute("aria-expanded", String(open));
}

let counting = null;

/** How many questions wait, and whether all is stopped; many events at once are one look. */
export function countInbox() {
  counting ??= setTimeout(async () => {
    counting = null;
    const asked = [get("/approvals", { state: "pending", limit: 500 }), get("/rules"), get("/sessions/current")];
    const [{ approvals } = {}, { rules } = {}, now] = await Promise.all(asked).catch(() => []);
    if (!now) return;
    session = now;
    const waiting = approvals.length + rules.filter(inbox.isOffered).length;
    setTimeZone(session.timeZone);
    drawStop(session.stopped);
    for (const place of document.querySelectorAll("header .count")) {
      place.textContent = waiting;
      place.hidden = !waiting;
      place.setAttribute("aria-label", `${waiting} waiting`);
    }
  }, 100);
}

const stopPlace = h("div.row.end.tools");

function drawStop(stopped) {
  if (!session.owner || stopPlace.stopped === stopped) return;
  stopPlace.stopped = stopped;
  const change = (path, told) => async () => {
    const answer = await post(path, {});
    toast(told ?? answer.message);
    drawStop(answer.halted.all);
  };
  replace(
    stopPlace,
    stopped
      ? [badge("everything is stopped", "bad"), button("Resume", change("/resume"), { className: "primary" })]
      : button("Stop everything", change("/stop", "Everything is stopped until you press Resume."), { className: "danger" }),
  );
}

async function signOut() {
  if (!(await ask("Sign out of this browser?", [], { yes: "Sign out" }))) return;
  await post("/sessions/current/end").catch(() => {});
  setKey(null);
  location.reload();
}

/** Alt and a digit go to a view. */
function onKey(event) {
  const links = [...document.querySelectorAll("#menu a")];
  if (event.altKey && /^[1-9]$/.test(event.key) && links[Number(event.key) - 1]) {
    event.preventDefault();
    location.hash = links[Number(event.key) - 1].getAttribute("href");
  }
}

export async function show() {
  if (location.hash === "#main") return main.focus();
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  // Names and ids only: they become parts of addresses of the hub, which nothing else may lead elsewhere.
  const [name, ...rest] = path.split("/").filter((one) => /^\w[\w.:-]*$/.test(one));
  const known = VIEWS.find((one) => one.name === name && (!one.owner || session.owner));
  const view = known ?? VIEWS[0];
  for (const link of document.querySelectorAll("#menu a")) {
    if (link.dataset.view === view.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const place = { rest: known ? rest : [], query: new URLSearchParams(query), session };
  const moved = shown !== null && shown !== view.name;
  shown = view.name;
  document.title = `${view.title} · Annabelle`;
  const pressed = document.activeElement?.closest(".tabs a, .choices a")?.textContent;
  leave?.();
  leave = null;
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  const root = h("div", { className: `view ${view.name}` }, h("p.empty", { role: "status" }, "Loading …"));
  replace(main, root);
  // A view listens once it is drawn. What happens before that is told to it then.
  const missed = [];
  const note = (event) => missed.push(event.detail);
  window.addEventListener("annabelle", note);
  try {
    const done = await view.render(root, place);
    if (main.contains(root)) leave = done;
    else done?.();
  } catch (error) {
    replace(root, h("h1", view.title), h("p.problem", { role: "alert" }, describeError(error)), button("Try again", show));
    if (main.contains(root)) leave = on("back", show);
  } finally {
    window.removeEventListener("annabelle", note);
  }
  if (main.contains(root)) missed.forEach(tellView);
  // The view is drawn again with each tab, so the link that was pressed is another one now.
  if (!moved) return [...main.querySelectorAll(".tabs a, .choices a")].find((one) => one.textContent === pressed)?.focus({ preventScroll: true });
  // Whoever was faster than the last answer of the hub is at a control of the view already, and stays there.
  if (root.contains(document.activeElement)) return;
  main.focus({ preventScroll: true });  // or its heading would be behind the header
  scrollTo(0, 0);
}

// A link that is opened where the page is open already changes nothing but the end of the address.
window.addEventListener("hashchange", () => location.hash.startsWith("#link=") && location.reload());
begin();
