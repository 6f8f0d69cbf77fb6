// Everything that waits for the person: questions before calls, and rules that want a yes.
import { get, post } from "../api.js";
import { countInbox } from "../app.js";
import { badge, button, codeBlock, describeError, details, h, makeField, replace, time, toast } from "../dom.js";
import { drawRows, onNews } from "../live.js";

export async function render(root) {
  const [told, questions, offers, past] = [h("p"), h("div"), h("div"), h("div")];
  const answered = details("Answered", past, { hidden: true });
  const draw = async () => {
    const [{ approvals }, { approvals: all }, { rules }] = await Promise.all([get("/approvals", { state: "pending", limit: 500 }), get("/approvals"), get("/rules")]);
    const offered = rules.filter((one) => ["stated", "proposed"].includes(one.state));
    const before = all.filter((one) => one.state !== "pending").slice(0, 30);
    told.className = approvals.length + offered.length ? "" : "empty";
    told.textContent = approvals.length + offered.length
      ? "Annabelle waits for your answer before it does these."
      : "Nothing waits for you. When Annabelle is about to do something that cannot be undone, it asks here and in the chat.";
    // The newest come last: nothing moves under the hand of somebody who is about to answer.
    drawRows(questions, approvals.reverse(), (one) => one.id, (one) => approvalCard(one, draw));
    drawRows(offers, offered, (one) => one.id, (one) => ruleCard(one, draw));
    drawRows(past, before, (one) => one.id, answeredCard);
    answered.hidden = !before.length;
    answered.firstChild.textContent = `Answered (${before.length})`;
    countInbox();
  };
  await draw();
  replace(root, h("h1", {}, "Inbox"), told, questions, offers, answered);
  return onNews(draw);
}

/** A question with the exact call, why it is asked, and the answers. Also shown inside a chat. */
export function approvalCard(asked, onAnswered) {
  const heading = `question-${asked.id}`;
  const card = h("section", { className: "card question", "aria-labelledby": heading });
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
    const fields = makeField({ name: "arguments", label: "The arguments of the call, as JSON", kind: "textarea", value: JSON.stringify(asked.edited ?? asked.arguments, null, 2), rows: 8 });
    const note = makeField({ name: "note", label: "A word to the agent (optional)" });
    replace(
      card,
      h("h2", { id: heading }, `Change the call of ${asked.tool}`),
      fields.element,
      note.element,
      h(
        "div",
        { className: "row" },
        button("Approve this call", async () => {
          let changed;
          try {
            changed = JSON.parse(fields.read());
          } catch (error) {
            throw new Error(`This is not valid JSON: ${error.message}`);
          }
          await answer({ verdict: "approve", arguments: changed, note: note.read() });
        }, { className: "primary" }),
        button("Back", draw),
      ),
    );
    fields.input.focus();
  };
  const draw = () =>
    replace(
      card,
      h("h2", { id: heading }, asked.tool, " ", badge("waits for you", "wait")),
      h("ul", { className: "reasons" }, asked.reasons.map((one) => h("li", {}, one))),
      asked.order && h("p", {}, "Taken as your order: ", h("q", {}, asked.order)),
      codeBlock(asked.edited ?? asked.arguments),
      h("p", { className: "hint" }, asked.agentId, " · asked ", time(asked.createdAt), " · expires ", time(asked.expiresAt)),
      h(
        "div",
        { className: "row" },
        button("Approve", () => answer({ verdict: "approve" }), { className: "primary" }),
        button("Deny", () => answer({ verdict: "deny" }), { className: "danger" }),
        button("Change …", change),
        asked.always && button("Always", () => answer({ verdict: "approve", always: true }), { title: asked.always.words }),
      ),
      asked.always && h("p", { className: "hint" }, "“Always” makes this rule: ", asked.always.words),
    );
  draw();
  return card;
}

function answeredCard(asked) {
  return h("div", { className: "line" }, badge(asked.state), " ", h("strong", {}, asked.tool), " ", time(asked.decidedAt ?? asked.createdAt), asked.note && ` “${asked.note}”`, codeBlock(asked.edited ?? asked.arguments));
}

function ruleCard(rule, onAnswered) {
  const answer = async (what, told) => {
    await post(`/rules/${rule.id}/${what}`);
    toast(told);
    await onAnswered();
  };
  return h(
    "section",
    { className: "card question" },
    h("h2", {}, "A rule ", badge("waits for you", "wait")),
    h("p", {}, h("q", {}, rule.words)),
    h("p", { className: "hint" }, "Understood as: ", rule.reading, rule.state === "stated" && " It holds already."),
    h(
      "div",
      { className: "row" },
      button("Yes", () => answer("confirm", "The rule holds now."), { className: "primary" }),
      button("No", () => answer("revoke", "The rule does not hold."), { className: "danger" }),
    ),
  );
}
