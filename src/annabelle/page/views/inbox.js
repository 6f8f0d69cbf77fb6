// Everything that waits for the person: questions before calls, and rules that want a yes.
import { get, post } from "../api.js";
import { countInbox } from "../app.js";
import { ask, badge, button, describeError, details, h, makeField, replace, spellOut, time, toast, valueField, valueList } from "../dom.js";
import { drawRows, onNews } from "../live.js";

const STATES = { approved: ["approved", "good"], used: ["approved and done", "good"], cancelled: ["taken back", ""] };

export function isOffered(rule) {
  return ["stated", "proposed"].includes(rule.state);
}

export async function render(root) {
  const [told, questions, offers, holding, answered] = [h("p"), h("div"), h("div"), details("", h("div")), details("", h("div"))];
  const draw = async () => {
    const [{ approvals }, { approvals: all }, { rules }] = await Promise.all([get("/approvals", { state: "pending", limit: 500 }), get("/approvals"), get("/rules")]);
    const offered = rules.filter(isOffered);
    const held = rules.filter((one) => one.state === "active");
    const before = all.filter((one) => one.state !== "pending").slice(0, 30);
    told.className = approvals.length + offered.length ? "" : "empty";
    told.textContent = approvals.length + offered.length
      ? "Annabelle waits for your answer before it does these."
      : "Nothing waits for you. When Annabelle is about to do something that cannot be undone, it asks here and in the chat.";
    // The newest come last: nothing moves under the hand of somebody who is about to answer.
    drawRows(questions, approvals.reverse(), (one) => one.id, (one) => approvalCard(one, draw));
    drawRows(offers, offered, (one) => one.id, (one) => ruleCard(one, draw));
    drawPart(holding, "Rules that hold", held, (one) => heldRule(one, draw));
    drawPart(answered, "Answered", before, answeredCard);
    countInbox();
  };
  await draw();
  replace(root, h("h1", "Inbox"), told, questions, offers, holding, answered);
  return onNews(draw);
}

function drawPart(part, title, rows, draw) {
  drawRows(part.lastChild, rows, (one) => one.id, draw);
  part.hidden = !rows.length;
  part.firstChild.textContent = `${title} (${rows.length})`;
}

/** A question with the exact call, why it is asked, and the answers. Also shown inside a chat. */
export function approvalCard(asked, onAnswered) {
  const heading = `question-${asked.id}`;
  const card = h("section.card.question", { "aria-labelledby": heading });
  const answer = async (body) => {
    try {
      const made = await post(`/approvals/${asked.id}`, body);
      toast(made.approval.state === "denied" ? "It will not be done." : made.ruleId ? "It goes on, and the rule is made." : "It goes on.");
    } catch (error) {
      if (error.status !== 409) throw error;
      toast(`It was answered already. ${describeError(error)}`);
    }
    await onAnswered();
  };
  const change = () => {
    const fields = Object.entries(asked.edited ?? asked.arguments).map(([name, value]) => valueField(name, value));
    const note = makeField({ name: "note", label: "A word to the agent (optional)" });
    replace(
      card,
      h("h2", { id: heading }, `Change the call of ${asked.tool}`),
      fields.map((one) => one.element),
      note.element,
      h(
        "div.row",
        button("Approve this call", async () => {
          await answer({ verdict: "approve", arguments: Object.fromEntries(fields.map((one) => [one.name, one.value()])), note: note.read() });
        }, { className: "primary" }),
        button("Back", draw),
      ),
    );
    (fields[0] ?? note).input.focus();
  };
  const draw = () =>
    replace(
      card,
      h("h2", { id: heading }, asked.tool, " ", badge("waits for you", "wait")),
      h("ul.reasons", asked.reasons.map((one) => h("li", one))),
      asked.order && h("p", "Taken as your order: ", h("q", spellOut(asked.order))),
      valueList(spellOut(asked.edited ?? asked.arguments)),
      h("p.hint", asked.agentId, " · asked ", time(asked.createdAt), " · expires ", time(asked.expiresAt)),
      h(
        "div.row",
        button("Approve", () => answer({ verdict: "approve" }), { className: "primary" }),
        button("Deny", () => answer({ verdict: "deny" }), { className: "danger" }),
        button("Change …", change),
        asked.always && button("Always", () => answer({ verdict: "approve", always: true }), { title: asked.always.words }),
      ),
      asked.always && h("p.hint", "“Always” makes this rule: ", asked.always.words),
    );
  draw();
  return card;
}

export function approvalState(asked) {
  return badge(...(STATES[asked.state] ?? [asked.state, ""]));
}

function answeredCard(asked) {
  const note = asked.note && ` “${asked.note}”`;
  return h("div.line", approvalState(asked), " ", h("strong", asked.tool), " ", time(asked.decidedAt ?? asked.createdAt), note, valueList(spellOut(asked.edited ?? asked.arguments)));
}

function heldRule(rule, onEnded) {
  const end = async () => {
    if (!(await ask("End this rule?", [], { yes: "End it", danger: true, text: rule.words }))) return;
    await post(`/rules/${rule.id}/revoke`);
    await onEnded();
  };
  return h("div.line.row", h("span.grow", spellOut(rule.words)), button("End this rule", end, { "aria-label": `End the rule: ${rule.words}` }));
}

/** A rule that was noticed or proposed. Also shown inside a chat. */
export function ruleCard(rule, onAnswered) {
  const answer = async (what, told) => {
    await post(`/rules/${rule.id}/${what}`);
    toast(told);
    await onAnswered();
  };
  return h(
    "section.card.question",
    { "aria-label": "A rule" },
    h("h2", "A rule ", badge("waits for you", "wait")),
    h("p", h("q", spellOut(rule.words))),
    h("p.hint", "Understood as: ", rule.reading, rule.state === "stated" && " It holds already."),
    h(
      "div.row",
      button("Yes", () => answer("confirm", "The rule holds now."), { className: "primary" }),
      button("No", () => answer("revoke", "The rule does not hold."), { className: "danger" }),
    ),
  );
}
