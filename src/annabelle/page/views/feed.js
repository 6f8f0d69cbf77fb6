// What was found and thought of for the person's goals, and when it comes.
import { get, post } from "../api.js";
import { ask, askUntilDone, badge, button, capitalize, dayOf, h, onlyChanged, replace, time, toast } from "../dom.js";
import { drawChanged, drawRows, joinNewest, onNews } from "../live.js";
import { markdown } from "../markdown.js";
import { outsideWarning } from "../notes.js";

const PARTS = ["morning", "afternoon", "evening"];
const KINDS = { discovery: "Discovery", reflection: "Reflection" };
const OLDER = 20;
const NOTHING_YET = "Nothing has come yet. The next part of the feed brings what is new for your goals, and thoughts on how they go.";
const SWITCHED_OFF = "Nothing comes while the feed is switched off. Change the times to switch it on.";

export async function render(root) {
  const feed = new Feed();
  await feed.refresh();
  replace(root, h("h1", "Feed"), feed.times, feed.empty, feed.list, feed.older);
  return onNews(() => feed.refresh());
}

class Feed {
  constructor() {
    Object.assign(this, { items: [], before: undefined });
    this.times = h("section.card", { "aria-label": "When it comes" });
    this.list = h("div");
    this.empty = h("p.empty");
    this.older = button("Show older", () => this.loadOlder());
  }

  async refresh() {
    const [found, agent, { goals }] = await Promise.all([get("/feed"), get("/user-agent"), get("/goals", { archived: true })]);
    this.goals = new Map(goals.map((one) => [one.goalId, one.title]));
    // What is shown stays, with the older pages.
    this.items = joinNewest(found.items, this.items, (one) => one.itemId);
    if (this.items.length === found.items.length) this.before = found.before;
    this.drawTimes(agent, goals.some((one) => one.state !== "archived"));
    this.draw();
  }

  async loadOlder() {
    const found = await get("/feed/history", { before: this.before, limit: OLDER });
    this.items.push(...found.items);
    this.before = found.before;
    this.draw();
  }

  draw() {
    let day = null;
    const rows = this.items.map((one) => {
      const first = dayOf(one.createdAt) !== day;
      day = dayOf(one.createdAt);
      return { ...one, first, goal: this.goals.get(one.goalId) ?? null };
    });
    drawRows(this.list, rows, (one) => one.itemId, itemCard);
    this.empty.hidden = Boolean(rows.length);
    this.older.hidden = !this.before;
  }

  drawTimes(agent, hasGoals) {
    const times = PARTS.filter((one) => agent.feed[one]);
    const off = hasGoals ? "It is switched off." : "With your first goal it comes every morning, afternoon and evening.";
    const when = times.length ? `${times.map((one) => `${capitalize(one)} ${agent.feed[one]}`).join(", ")} (${agent.feed.timeZone}).` : off;
    const buttons = [button("Change the times", () => this.change(agent.feed)), times.length > 0 && button("Switch off", () => this.switchOff())];
    const talk = agent.threadId && h("p", h("a", { href: `#/chat/${agent.threadId}` }, "Talk about all your goals"));
    const parts = [h("h2", "When it comes"), h("p", when), hasGoals && h("div.row", buttons), talk];
    drawChanged(this.times, [agent.feed, agent.threadId, hasGoals], () => parts);
    const first = ["The feed brings discoveries and reflections for your goals. ", h("a", { href: "#/goals" }, "Make a goal first.")];
    replace(this.empty, hasGoals ? (times.length ? NOTHING_YET : SWITCHED_OFF) : first);
  }

  change(schedule) {
    const fields = PARTS.map((one) => {
      // A part that was changed as a skill may come more often than once a day, which is said in words.
      const isClock = /^\d\d:\d\d$/.test(schedule[one]);
      const hint = schedule[one] && !isClock ? `It comes ${schedule[one]}. A time here takes the place of that.` : "Empty: it does not come.";
      return { name: one, label: capitalize(one), kind: "time", value: isClock ? schedule[one] : "", hint };
    });
    return askUntilDone("When the feed comes", fields, { yes: "Save" }, (given) => this.setTimes(onlyChanged(fields, given)));
  }

  async switchOff() {
    const sure = await ask("Switch the feed off?", [], { yes: "Switch off", text: "What has come so far stays here." });
    if (sure) await this.setTimes(Object.fromEntries(PARTS.map((one) => [one, ""])));
  }

  /** A part whose time is empty does not come; one that is not named stays as it is. */
  async setTimes(times) {
    await post("/feed/schedule", Object.fromEntries(Object.entries(times).map(([one, clock]) => [one, clock || null])));
    toast("The times are changed.");
    await this.refresh();
  }
}

function itemCard(item) {
  const heading = `item-${item.itemId}`;
  const goal = item.goal && [" · for ", h("a", { href: `#/goals/${item.goalId}` }, item.goal)];
  const day = item.first && h("h2.day", time(item.createdAt, "day"));
  const title = h("h3", { id: heading }, item.title, " ", badge(KINDS[item.kind] ?? item.kind));
  const when = h("p.hint", time(item.createdAt, "clock"), goal);
  const warning = item.trust === "untrusted" && outsideWarning();
  return h("div", day, h("article.card", { "aria-labelledby": heading }, title, warning, markdown(item.content), when));
}
