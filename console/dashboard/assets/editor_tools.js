// Tools of the template editor: variables to insert, formatted HTML, full screen, saving with Ctrl-S.
import beautifyCss from "js-beautify/js/src/css/index.js";
import beautifyHtml from "js-beautify/js/src/html/index.js";

const MAX_VARIABLES = 200;
const MAX_DEPTH = 5;
const NAME = /^[\w-]+$/;
const STATE = "template-editor";
// Fields of the form that are not a part of the template.
const UNSAVED_FIELDS = ["csrfmiddlewaretoken", "scheme", "shown", "within", "test_from", "test_to"];
// Sections stay where they are: a line break beside one that touches text would add a space to the email.
const FORMAT = {
  indent_size: 2,
  indent_inner_html: true,
  indent_handlebars: false,
  templating: ["handlebars"],
  wrap_line_length: 0,
  max_preserve_newlines: 2,
  extra_liners: [],
  content_unformatted: ["pre", "textarea", "script"],
};

export function formatHtml(source) {
  return beautifyHtml(source, FORMAT, null, formatCss);
}

// Tags of the template language are not CSS.
function formatCss(source, options) {
  return source.includes("{{") ? source : beautifyCss(source, options);
}

// Yield the tags for a value of the sample data. before and after: the parts beside the cursor.
function* tagsOf(value, path = []) {
  for (const [key, item] of Object.entries(value)) {
    if (!NAME.test(key)) continue;
    const name = [...path, key].join(".");
    if (Array.isArray(item)) yield { group: "loops", before: `{{#each ${name}}}${fieldsOf(item[0])}`, after: "{{/each}}" };
    else if (typeof item === "boolean") yield { group: "conditions", before: `{{#if ${name}}}`, after: "{{/if}}" };
    else if (item !== null && typeof item === "object") { if (path.length < MAX_DEPTH) yield* tagsOf(item, [...path, key]); }
    else yield { group: "variables", before: `{{${name}}}`, after: "" };
  }
}

function fieldsOf(item) {
  if (item === null || typeof item !== "object") return "{{this}}";
  return Object.keys(item).filter((key) => NAME.test(key)).map((key) => `{{${key}}}`).join(" ");
}

function parseData(text) {
  try {
    const data = JSON.parse(text || "{}");
    return data !== null && typeof data === "object" && !Array.isArray(data) ? data : {};
  } catch {
    // The check shows the error.
    return null;
  }
}

// Fill the list of tags: of the sample data, the variables without a value, partials, and the unsubscribe link.
export function fillTags(list, data, missing, { partials, isLayout }) {
  const parsed = parseData(data);
  if (!parsed) return;
  const tags = [];
  for (const tag of tagsOf(parsed)) if (tags.push(tag) === MAX_VARIABLES) break;
  tags.push(...missing.map((name) => ({ group: "variables", before: `{{${name}}}`, after: "" })));
  tags.push(...partials.map((partial) => ({ group: "partials", after: "", ...partial })));
  if (isLayout) tags.push({ group: "partials", before: "{{{content}}}", after: "" });
  tags.push({ group: "links", before: "%unsubscribe_url%", after: "" });
  const chosen = list.value;
  for (const group of list.querySelectorAll("optgroup")) {
    const members = tags.filter((tag) => tag.group === group.dataset.group);
    group.replaceChildren(...members.map(createOption));
    group.hidden = members.length === 0;
  }
  if ([...list.options].some((option) => option.value === chosen)) list.value = chosen;
}

// label: the name of a partial, whose tag may have its id.
function createOption({ before, after, label }) {
  const option = document.createElement("option");
  option.value = JSON.stringify([before, after]);
  option.textContent = before + after + (label ? `: ${label}` : "");
  return option;
}

// Insert the chosen tag at the cursor of the field that had the focus last.
export function insertTag(list, field) {
  const [before, after] = JSON.parse(list.value);
  if (field.dispatch) {
    const change = field.state.replaceSelection(before + after);
    field.dispatch(change);
    const end = field.state.selection.main.head - after.length;
    field.dispatch({ selection: { anchor: end }, scrollIntoView: true });
  } else {
    field.setRangeText(before + after, field.selectionStart, field.selectionEnd, "end");
    field.setSelectionRange(field.selectionEnd - after.length, field.selectionEnd - after.length);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  field.focus();
}

// Replace the document as one change, which Ctrl-Z takes back.
export function formatEditor(view) {
  const source = view.state.doc.toString();
  const formatted = formatHtml(source);
  if (formatted !== source) view.dispatch({ changes: { from: 0, to: source.length, insert: formatted } });
  view.focus();
}

export function setFullScreen(form, isFull) {
  document.documentElement.classList.toggle("pr-full", isFull);
  form.querySelector("[data-fullscreen]").setAttribute("aria-pressed", String(isFull));
}

// Save with Ctrl-S, show unsaved changes and ask before they are lost. A saved page opens as it was left.
export function keepSaved(form, editors, languages) {
  const status = form.querySelector("[data-saved]");
  const values = () => {
    const entries = [...new FormData(form)].filter(([name]) => !UNSAVED_FIELDS.includes(name));
    return JSON.stringify(entries.map(([name, value]) => [name, value.replaceAll("\r\n", "\n")]));
  };
  // A refused form has values that are not saved.
  const saved = "refused" in form.dataset ? null : values();
  let isLeaving = false;

  const show = (isNew) => {
    const isChanged = values() !== saved;
    status.textContent = isChanged ? status.dataset.unsaved : isNew ? status.dataset.saved : "";
    status.dataset.tone = isChanged ? "warning" : "success";
  };
  form.addEventListener("input", () => show(false));
  form.addEventListener("submit", (event) => {
    if (event.submitter !== form.querySelector("[data-save]")) return;
    isLeaving = true;
    const focused = Object.entries(editors).find(([, view]) => view.hasFocus);
    const place = focused && { name: focused[0], head: focused[1].state.selection.main.head, top: focused[1].scrollDOM.scrollTop };
    const isFull = document.documentElement.classList.contains("pr-full");
    sessionStorage.setItem(STATE, JSON.stringify({ isFull, place, shown: form.elements.namedItem("shown").value }));
  });
  window.addEventListener("beforeunload", (event) => {
    if (!isLeaving && values() !== saved) event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "s") return;
    event.preventDefault();
    if (!document.querySelector("dialog[open]")) form.requestSubmit(form.querySelector("[data-save]"));
  });
  const left = JSON.parse(sessionStorage.getItem(STATE) ?? "null");
  sessionStorage.removeItem(STATE);
  if (left) restore(form, editors, languages, left);
  show(left !== null);
}

function restore(form, editors, languages, { isFull, place, shown }) {
  if (isFull) setFullScreen(form, true);
  // A refused form is opened at its error.
  if (!("refused" in form.dataset)) languages.show(shown);
  const view = place && editors[place.name];
  if (!view) return;
  view.dispatch({ selection: { anchor: Math.min(place.head, view.state.doc.length) } });
  view.focus();
  // After the editor has measured its lines.
  requestAnimationFrame(() => { view.scrollDOM.scrollTop = place.top; });
}
