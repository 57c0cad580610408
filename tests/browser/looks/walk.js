// Watches where the Tab key really leads (keyboard.py): `begin` puts the focus before everything and
// says how much there is to reach, `end` says what was not reached and where the order jumps back.
([what, known]) => {
  const STOPS = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  const isShown = node => node.checkVisibility({visibilityProperty: true});
  const isStop = node => isShown(node) && !node.matches(":disabled, [tabindex='-1']")
    // Of the radio buttons with one name, Tab leads to the one that is chosen.
    && (node.type !== "radio" || node.checked || !document.querySelector(`[name="${node.name}"]:checked`));
  const short = node => node.cloneNode().outerHTML.slice(0, 160);

  // Where the focus goes from things at one kind of place has been seen on another page, as long as
  // no style puts them elsewhere.
  const sortOf = node => {
    const orders = [];
    for (let part = node; part; part = part.parentElement) orders.push(getComputedStyle(part).order);
    const around = node.parentElement.closest("form, table, nav, details, dialog, aside, header, footer, main, body");
    return [node.localName, node.type, around.localName, ...orders.filter(Number)].join(" ");
  };

  if (what === "begin") {
    const stops = [...document.querySelectorAll(STOPS)].filter(isStop);
    const sorts = [...new Set(stops.map(sortOf))];
    const isNew = sorts.some(sort => !known.includes(sort));
    if (isNew) {
      document.body.tabIndex = -1;
      document.body.focus();
      document.body.removeAttribute("tabindex");
      if (!window.walked) document.addEventListener("focusin", ({target}) => walked.push(target));
      window.walked = [];
    }
    return {sorts, count: isNew ? stops.length : 0};
  }

  if (what === "is over") return !document.activeElement || document.activeElement === document.body
    || walked.indexOf(document.activeElement) < walked.length - 1;

  const problems = [];
  const [first] = walked;
  if (!first?.matches(".skip-link")) problems.push(`keyboard: the first is no link that skips to the content: ${first && short(first)}`);
  for (const node of document.querySelectorAll(STOPS)) {
    // What a script has put anew meanwhile is the same for whoever walks.
    if (isStop(node) && !walked.some(each => each.isEqualNode(node))) problems.push(`keyboard: Tab does not lead to ${short(node)}`);
  }
  let before = null;
  for (const node of walked) {
    // What a script has put anew meanwhile stands nowhere any more.
    if (!node.isConnected) continue;
    const {left, right, top, bottom} = node.getBoundingClientRect();
    // A narrow header has the menu at the end of its first line, and what leads elsewhere below.
    const isHead = node.closest("header") && before?.node.closest("header");
    if (before && !isHead && bottom <= before.top + 1 && left < before.right) {
      problems.push(`keyboard: Tab leads back up, from ${short(before.node)} to ${short(node)}`);
    }
    if (!node.matches(".skip-link")) before = {top, right, node};
    if (walked.indexOf(node) < walked.lastIndexOf(node)) break;
  }
  return problems;
}
