// The template editor: highlighting, errors at their position, a preview after the last key press, test emails.
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { LanguageSupport, LRLanguage, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { Decoration, EditorView, MatchDecorator, ViewPlugin, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { parser as htmlParser } from "@lezer/html";
import { parser as jsonParser } from "@lezer/json";
import { fieldName, startLanguages } from "./editor_languages.js";
import { fillTags, formatEditor, insertTag, keepSaved, setFullScreen } from "./editor_tools.js";

const DELAY_MILLISECONDS = 300;
const LANGUAGES = { html: htmlParser, json: jsonParser };

// Tags of the template language: comments, sections, values.
const tagClass = (tag) => (/^\{\{!/.test(tag) ? "pr-tag-comment" : /^\{\{\s*(#|\/|>|else)/.test(tag) ? "pr-tag-section" : "pr-tag-value");
const tagMarks = new MatchDecorator({
  regexp: /\\?\{\{(?:!--.*?--|\{[^{}]*\}|[^{}]*)\}\}/g,
  // A backslash makes the braces text.
  decorate: (add, from, to, match) => match[0].startsWith("\\") || add(from, to, Decoration.mark({ class: tagClass(match[0]) })),
});
const templateTags = ViewPlugin.define(
  (view) => ({
    decorations: tagMarks.createDeco(view),
    update(change) { this.decorations = tagMarks.updateDeco(change, this.decorations); },
  }),
  { decorations: (plugin) => plugin.decorations },
);

// Replace a text area by an editor. The text area keeps the value, for the form.
function createEditor(area) {
  const parser = LANGUAGES[area.dataset.language];
  const label = area.labels[0]?.textContent.replace("*", "").trim() ?? area.name;
  const view = new EditorView({
    state: EditorState.create({
      doc: area.value,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        bracketMatching(),
        EditorView.lineWrapping,
        keymap.of([...defaultKeymap, ...historyKeymap]),
        parser ? new LanguageSupport(LRLanguage.define({ parser })) : [],
        area.dataset.language === "json" ? [] : templateTags,
        syntaxHighlighting(classHighlighter),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          area.value = update.state.doc.toString();
          area.dispatchEvent(new Event("input", { bubbles: true }));
        }),
      ],
    }),
  });
  area.hidden = true;
  view.dom.dataset.field = area.name;
  area.after(view.dom);
  return view;
}

// Line and column count from 1, and columns count characters, not UTF-16 units.
function offsetOf(doc, { line, column }) {
  const found = doc.line(Math.min(line, doc.lines));
  return found.from + Array.from(found.text).slice(0, column - 1).join("").length;
}

function diagnosticsOf(view, result) {
  if (!result.line) return [];
  const { doc } = view.state;
  const from = offsetOf(doc, result);
  const close = doc.sliceString(from, doc.lineAt(from).to).indexOf("}}");
  const to = close < 0 ? doc.lineAt(from).to : from + close + 2;
  return [{ from, to, severity: "error", message: result.error }];
}

function start(form) {
  const status = form.querySelector("[data-status]");
  const missing = form.querySelector("[data-missing]");
  const field = (name) => form.elements.namedItem(name);
  const tags = form.querySelector("[data-tags]");
  const editors = {};
  const partials = JSON.parse(document.getElementById("partials").textContent);
  // The subject, HTML or text that had the focus last: tags are inserted there.
  let latestField = "html";
  let htmlField = "html";
  const open = (part) => {
    for (const area of part.querySelectorAll("textarea[data-language]")) editors[area.name] ??= createEditor(area);
  };
  const close = (part) => {
    for (const { name } of part.querySelectorAll("textarea[data-language]")) {
      editors[name]?.destroy();
      delete editors[name];
    }
  };
  open(form.querySelector("[data-sample]"));
  const languages = startLanguages(form, {
    open,
    close,
    changed: (locale) => { latestField = htmlField = fieldName("html", locale); },
  });
  let timer = 0;
  let latestCheck = 0;

  const post = (url) => fetch(url, { method: "POST", body: new FormData(form) }).catch(() => null);

  async function check() {
    const thisCheck = ++latestCheck;
    const response = await post(form.dataset.check);
    // Ignore the response to an older version of the form.
    if (thisCheck !== latestCheck || !response?.ok) return;
    show(await response.json());
  }

  function show(result) {
    status.textContent = result.error ?? form.dataset.valid;
    status.dataset.tone = result.error ? "danger" : "success";
    for (const input of form.querySelectorAll("input[name^=subject]")) {
      input.setAttribute("aria-invalid", String(result.field === input.name));
    }
    languages.mark(result.field);
    for (const [name, view] of Object.entries(editors)) {
      view.dom.classList.toggle("pr-invalid", result.field === name);
      view.dispatch(setDiagnostics(view.state, result.field === name ? diagnosticsOf(view, result) : []));
    }
    missing.replaceChildren(...(result.missing ?? []).map(createTag));
    missing.closest("[data-missing-box]").hidden = !result.missing?.length;
    fillTags(tags, field("data").value, result.missing ?? [], { partials, isLayout: form.dataset.kind === "layout" });
    if (result.error) return;
    const subject = form.querySelector("[data-subject]");
    subject.textContent = result.subject;
    if ("ofUser" in subject.parentElement.dataset) subject.parentElement.hidden = !result.subject;
    form.querySelector("[data-text]").textContent = result.text;
    preview();
  }

  // A new frame for each preview: navigating one frame would add entries to the browser history.
  function preview() {
    const old = form.querySelector("iframe");
    const frame = old.cloneNode();
    old.replaceWith(frame);
    form.requestSubmit(form.querySelector("[data-preview]"));
  }

  async function sendTest(button) {
    const outcome = form.querySelector("[data-outcome]");
    button.disabled = true;
    const response = await post(button.dataset.test);
    const result = response?.ok ? await response.json() : { error: button.dataset.failed };
    outcome.textContent = result.error ?? result.message;
    outcome.dataset.tone = result.error ? "danger" : "success";
    if (result.url) outcome.append(" ", createLink(result.url, button.dataset.open));
    button.disabled = false;
  }

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, DELAY_MILLISECONDS);
  });
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.test) sendTest(button);
    if (button?.dataset.dialog) form.querySelector(button.dataset.dialog).showModal();
    if (button && "close" in button.dataset) button.closest("dialog").close();
    if (button && "insert" in button.dataset) insertTag(tags, editors[latestField] ?? field(latestField));
    if (button && "format" in button.dataset) formatEditor(editors[htmlField]);
    if (button?.dataset.within) {
      field("within").value = button.dataset.within;
      check();
    }
    if (button && "fullscreen" in button.dataset) setFullScreen(form, button.getAttribute("aria-pressed") !== "true");
  });
  form.addEventListener("focusin", (event) => {
    const name = event.target.closest(".cm-editor")?.dataset.field ?? event.target.name;
    if (/^(subject|html|text)(-|$)/.test(name)) latestField = name;
  });
  form.addEventListener("keydown", (event) => {
    // Enter in a dialog presses its button instead of sending the form.
    const dialog = event.key === "Enter" && event.target.matches("dialog input") && event.target.closest("dialog");
    if (!dialog) return;
    event.preventDefault();
    dialog.querySelector("[data-enter]").click();
  });
  document.addEventListener("keydown", (event) => {
    const isOpen = event.defaultPrevented || document.querySelector("dialog[open]");
    if (event.key === "Escape" && !isOpen) setFullScreen(form, false);
  });
  form.querySelector("[data-tools]").hidden = false;
  keepSaved(form, editors, languages);
  check();
}

function createTag(name) {
  const element = document.createElement("code");
  element.className = "pr-tag";
  element.textContent = name;
  return element;
}

function createLink(url, text) {
  const link = document.createElement("a");
  link.href = url;
  // The draft may be unsaved.
  link.target = "_blank";
  link.textContent = text;
  return link;
}

document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("[data-editor]");
  if (form) start(form);
});
