// Turns each value of the sample into a button with a menu. The menu changes the controls of the
// mapping form, and labels next to the values show the current mapping.
"use strict";

// Fields at the top of the menu, in order.
const FIRST = ["title", "severity", "hosts", "fingerprint", "start_time", "end_time"];
const MOST_RULES = 8;
const MOST_JOINED = 6;
const MARGIN = 8;

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function setUpPointing(form, part) {
  const named = (name) => [...form.querySelectorAll(`[name="${name}"]`)];
  const put = (control, value) => { control.value = value; };
  const fields = [...form.querySelectorAll("tr[data-field]")].map((row) => ({
    name: row.dataset.field,
    label: row.querySelector("th").textContent.replace(/ \(.*/, ""),
    selects: named(`map_${row.dataset.field}`),
  }));
  const place = ({ name }) => (FIRST.indexOf(name) + 1 || FIRST.length + 1);
  // A field without a selected path is read from the key with the name of the field.
  const sourceOf = ({ name, selects: [select] }) => select.value || JSON.stringify([name]);
  const inMenu = [...fields].sort((one, other) => place(one) - place(other));
  const joins = ["title", "fingerprint"].map((name) => fields.find((field) => field.name === name));

  // Returns the rows of rules: a path, a comparison, and words that are separated by commas.
  const rowsOf = (kind) => named(`${kind}_path`).map((path) => {
    const row = path.closest(".rule-row");
    return {
      row, path,
      operator: row.querySelector(`[name="${kind}_operator"]`),
      words: row.querySelector(`[name="${kind}_words"]`),
    };
  });
  const listWords = (row) => row.words.value.split(",").map((word) => word.trim()).filter(Boolean);
  const isSame = (one, other) => one.toLowerCase() === other.toLowerCase();

  // Adds a copy of the last control and returns it, or returns null at the maximum number of controls.
  function repeat(last, count, most) {
    if (count >= most) return null;
    const next = last.cloneNode(true);
    for (const control of [next, ...next.querySelectorAll("*")]) {
      if (control.matches("input")) control.value = "";
      if (control.matches("select")) control.selectedIndex = 0;
      const label = control.getAttribute("aria-label");
      if (label) control.setAttribute("aria-label", label.replace(String(count), String(count + 1)));
    }
    last.after(next);
    return next;
  }

  function findFreeRow(kind) {
    const rows = rowsOf(kind);
    const free = rows.find(({ path, words }) => !path.value && !words.value.trim());
    if (free) return free;
    return repeat(rows.at(-1).row, rows.length, MOST_RULES) && rowsOf(kind).at(-1);
  }

  // Returns the menu items for a value: a label, whether the item is checked, and a function that
  // toggles it. The function returns the control that it changed.
  function listFieldItems(path) {
    return inMenu.map((field) => ({
      label: field.label,
      isOn: sourceOf(field) === path,
      change(isOn) { put(field.selects[0], isOn ? "" : path); return field.selects[0]; },
    }));
  }

  function listJoinItems(path) {
    const isJoinable = (source) => source !== path && values.some(({ dataset }) => dataset.value === source);
    return joins.filter((field) => isJoinable(sourceOf(field))).map((field) => ({
      label: `Add to ${field.label.toLowerCase()}`,
      isOn: named(`join_${field.name}`).some((select) => select.value === path),
      change(isOn) {
        const selects = named(`join_${field.name}`);
        const found = selects.find((select) => select.value === (isOn ? path : ""))
          ?? repeat(selects.at(-1), selects.length, MOST_JOINED);
        if (found) put(found, isOn ? "" : path);
        return found;
      },
    }));
  }

  function buildRuleItem(kind, label, path, word) {
    const find = () => rowsOf(kind).find((row) => row.path.value === path && row.operator.value === "is");
    return {
      label,
      isOn: Boolean(find() && listWords(find()).some((each) => isSame(each, word))),
      change(isOn) {
        const row = find() ?? findFreeRow(kind);
        if (!row) return null;
        const others = row.path.value ? listWords(row).filter((each) => !isSame(each, word)) : [];
        const words = isOn ? others : [...others, word];
        put(row.words, words.join(", "));
        put(row.path, words.length ? path : "");
        put(row.operator, "is");
        return row.path;
      },
    };
  }

  function listRuleItems(path, word) {
    if (word === undefined) return [];
    return [
      buildRuleItem("resolved", "Resolves the alert when it is this value", path, word),
      buildRuleItem("dropped", "Ignore messages with this value", path, word),
    ];
  }

  // Returns descriptions of the form's fields and rules that use a path.
  function describeUses(path) {
    const found = fields.flatMap((field) => [
      [sourceOf(field), field.label],
      [field.selects[1].value, `${field.label} (fallback)`],
      ...named(`join_${field.name}`).map((select) => [select.value, `${field.label} (joined)`]),
    ]).flatMap(([source, words]) => (source === path ? [words] : []));
    for (const [kind, words] of [["resolved", "Resolved when"], ["dropped", "Ignored when"]]) {
      for (const row of rowsOf(kind)) {
        if (row.path.value !== path) continue;
        found.push(`${words} ${row.operator.selectedOptions[0].textContent} ${row.words.value}`);
      }
    }
    return found;
  }

  function mark() {
    for (const button of values) {
      const uses = describeUses(button.dataset.value);
      button.classList.toggle("used", uses.length > 0);
      button.querySelector(".uses").replaceChildren(
        ...uses.flatMap((words) => [" ", make("span", { class: "use" }, words)]),
      );
    }
  }

  const heading = make("p", { id: "pointing-title", class: "pointing-title" });
  const list = make("div", { role: "menu", "aria-labelledby": heading.id });
  const menu = make("div", { popover: "auto", class: "pointing-menu" }, heading, list);
  let opener = null;

  function buildGroup(label, items) {
    const group = make("div", { role: "group", "aria-label": label });
    for (const { label: words, isOn, change } of items) {
      const item = make("button", {
        type: "button", role: "menuitemcheckbox", "aria-checked": String(isOn), tabindex: "-1",
      }, words);
      item.addEventListener("click", () => {
        const control = change(isOn);
        menu.hidePopover();
        opener.focus();
        control?.dispatchEvent(new Event("change", { bubbles: true }));
      });
      group.append(item);
    }
    return group;
  }

  // Fills the menu before the browser opens or closes it.
  function fill(button) {
    if (opener && opener !== button) {
      menu.hidePopover();
      opener.setAttribute("aria-expanded", "false");
    }
    opener = button;
    const { value: path, label, word } = button.dataset;
    heading.replaceChildren("Use ", make("bdi", {}, label), " as …");
    const groups = [["Fields", listFieldItems(path)], ["Joined fields", listJoinItems(path)],
      ["Rules", listRuleItems(path, word)]];
    list.replaceChildren(
      ...groups.filter(([, items]) => items.length).map(([name, items]) => buildGroup(name, items)),
    );
  }

  // Places the menu below or above the value. If neither has enough space, the page is scrolled.
  function moveToValue() {
    const { offsetWidth: width, offsetHeight: height } = menu;
    const needed = height + 2 * MARGIN;
    let value = opener.getBoundingClientRect();
    if (Math.max(value.top, innerHeight - value.bottom) < needed) {
      opener.scrollIntoView({ block: "start", behavior: "instant" });
      value = opener.getBoundingClientRect();
    }
    const isBelow = innerHeight - value.bottom >= needed || value.top < needed;
    const top = isBelow ? value.bottom + MARGIN : value.top - height - MARGIN;
    menu.style.top = `${Math.max(MARGIN, Math.min(top, innerHeight - height - MARGIN))}px`;
    const left = Math.min(value.left, document.documentElement.clientWidth - width - MARGIN);
    menu.style.left = `${Math.max(MARGIN, left)}px`;
  }

  menu.addEventListener("toggle", ({ newState }) => {
    opener.setAttribute("aria-expanded", String(newState === "open"));
    if (newState !== "open") return;
    moveToValue();
    (list.querySelector("[aria-checked=true]") ?? list.querySelector("button")).focus();
  });
  menu.addEventListener("keydown", (event) => {
    const items = [...list.querySelectorAll("button")];
    const at = items.indexOf(document.activeElement);
    const next = {
      ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: -1,
    }[event.key];
    if (event.key === "Tab") menu.hidePopover();
    if (next === undefined) return;
    event.preventDefault();
    items.at(next % items.length).focus();
  });

  const values = [...part.querySelectorAll("[data-value]")].map((value) => {
    const button = make("button", {
      type: "button", class: "json-value", "aria-haspopup": "menu", "aria-expanded": "false",
    }, make("span", { class: "visually-hidden" }, `${value.dataset.label}: `), ...value.childNodes,
    make("span", { class: "uses" }));
    Object.assign(button.dataset, value.dataset);
    button.popoverTargetElement = menu;
    button.addEventListener("click", () => fill(button));
    value.replaceWith(button);
    return button;
  });
  part.append(menu);
  part.querySelector("[data-pointing-help]").hidden = false;
  for (const box of form.querySelectorAll("details[data-folded]")) box.open = false;
  form.addEventListener("change", mark);
  mark();
}

// Browsers without popovers show only the drop-down lists of the form.
if ("popover" in HTMLElement.prototype) {
  for (const part of document.querySelectorAll("[data-pointing]")) setUpPointing(part.closest("form"), part);
}
