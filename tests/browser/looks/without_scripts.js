// Elements of this page that are missing in a browser without scripts. The page as the server sent it
// is rendered in a frame that may not run scripts, and compared with this page.
async (source) => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-same-origin";
  frame.srcdoc = source;
  frame.style.cssText = "position: absolute; inset: 0 auto auto 0; border: 0; width: 1280px; height: 800px";
  const isLoaded = new Promise(resolve => frame.addEventListener("load", resolve));
  document.body.append(frame);
  await isLoaded;
  const plain = frame.contentDocument;
  const problems = new Set();
  const say = (node, words) => problems.add(`without scripts: ${words}: ${node.cloneNode().outerHTML.slice(0, 200)}`);

  // Users can open every box, so the content of a closed box is not missing.
  const away = new Map();
  const isAway = node => {
    if (!node) return false;
    if (!away.has(node)) {
      const { display } = node.ownerDocument.defaultView.getComputedStyle(node);
      away.set(node, display === "none" || isAway(node.parentElement));
    }
    return away.get(node);
  };
  const isThere = node => !isAway(node)
    && node.ownerDocument.defaultView.getComputedStyle(node).visibility === "visible";
  const all = (root, selector) => [...root.querySelectorAll(selector)].filter(isThere);
  // Authenticators need scripts, and the page explains this instead.
  const needsScripts = node => node.closest("form[data-passkey], dialog");

  if (plain.defaultView.matchMedia("(scripting: none)").matches === false) {
    problems.add("without scripts: the frame may run scripts, so nothing was compared");
  }
  for (const node of all(plain, "button[type=button], input[type=button], [onclick], a:not([href]), a[href='#']")) {
    say(node, "does nothing");
  }
  // A checkbox outside of forms may show or hide elements with styles.
  const places = () => JSON.stringify([...plain.querySelectorAll("main *")].map(each => each.getBoundingClientRect()));
  const changesPage = node => {
    const before = places();
    node.checked = !node.checked;
    const isChanged = places() !== before;
    node.checked = !node.checked;
    return isChanged;
  };
  for (const node of all(plain, "input:not([type=hidden]), select, textarea, button")) {
    if (!node.form && !changesPage(node)) say(node, "belongs to no form and changes nothing");
    if (!node.form) continue;
    if (![...node.form.elements].some(each => each.type === "submit" && isThere(each))) say(node, "is in a form that nothing sends");
  }
  for (const node of all(plain, "[aria-busy=true], progress:not([value]), [role=progressbar]")) say(node, "waits for a script");
  for (const node of all(plain, "main :empty:not(svg *, input, textarea, select, img, td, th)")) {
    const {height, width} = node.getBoundingClientRect();
    const isDrawn = plain.defaultView.getComputedStyle(node, "::before").content !== "none" || node.matches("[aria-hidden]");
    if (height > 30 && width > 30 && !isDrawn) say(node, "is empty");
  }

  // Elements that only a script could show.
  const isHidden = node => !isThere(node) && !needsScripts(node);
  // With scripts, one box selects all rows, and an empty list may get rows.
  const isOfRows = node => node.matches("[data-choose-all] *, .list-tools:has(+ #alert-rows > .empty) *");
  let hidden = [...plain.querySelectorAll("a[href], button:not([type=button]), select, textarea, input:not([type=hidden], [autocomplete=username])")]
    .filter(node => isHidden(node) && !isOfRows(node));
  // An option may show related elements with styles, so each option is selected in turn and reset.
  const choices = hidden.length ? [
    ...all(plain, "input:is([type=radio], [type=checkbox])"),
    ...all(plain, "select").flatMap(each => [...each.options]),
  ] : [];
  for (const choice of choices) {
    const form = choice.closest("form");
    if (!form || choice.matches(":disabled")) continue;
    if (choice.localName === "option") choice.selected = true;
    else choice.checked = !choice.checked;
    away.clear();
    hidden = hidden.filter(isHidden);
    form.reset();
    away.clear();
  }
  const keyOf = node => [node.localName, node.getAttribute("href") ?? node.name, node.type, node.localName === "button" ? node.value : ""].join(" ");
  // At another width, the same link or the same button of the same form has another place.
  const isElsewhere = node => all(plain, "a, button").some(each => keyOf(each) === keyOf(node) && each.form?.action === node.form?.action && isThere(each));
  // The target of a link within the page is visible anyway.
  const leadsWithin = node => node.matches('a[href^="#"]') && plain.querySelector(node.getAttribute("href")) !== null;
  for (const node of hidden) if (!leadsWithin(node) && !(node.matches("a, button") && isElsewhere(node))) say(node, "is hidden, whatever is chosen");
  // All links and controls of the page with scripts also exist without them.
  const there = new Set(all(plain, "a, button, input, select, textarea").map(keyOf));
  for (const node of all(document, "a[href], button:not([type=button]), input[name], select[name], textarea[name]")) {
    if (!there.has(keyOf(node)) && !needsScripts(node) && !leadsWithin(node)) say(node, "is missing");
  }
  for (const node of all(plain, ":disabled")) {
    const same = node.id && document.getElementById(node.id);
    if (same && !same.disabled) say(node, "is never enabled");
  }

  // Secrets are masked until their box is opened.
  for (const box of plain.querySelectorAll("details")) { box.removeAttribute("name"); box.open = true; }
  const view = plain.defaultView;
  for (const node of all(plain, ".masked")) {
    if (view.getComputedStyle(node).webkitTextSecurity !== "none") say(node, "stays masked");
  }
  for (const node of all(plain, "input[type=password][value]:not([value=''])")) say(node, "stays masked");
  frame.remove();
  return [...problems];
}
