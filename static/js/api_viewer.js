// Replaces the plain list of API operations with Swagger UI.
"use strict";

const place = document.getElementById("api-viewer");
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

// Swagger UI has its own class for the dark theme.
const followTheme = () => {
  const chosen = root.dataset.theme;
  root.classList.toggle("dark-mode", chosen ? chosen === "dark" : system.matches);
};
followTheme();
system.addEventListener("change", followTheme);
new MutationObserver(followTheme).observe(root, { attributeFilter: ["data-theme"] });

// Omits the title and the main landmark of Swagger UI, because the page has its own.
const parts = ({ React }) => ({
  components: {
    PageLayout: ({ getComponent, specSelectors }) => {
      const show = (name) => React.createElement(getComponent(name, true), { key: name });
      const status = specSelectors.loadingStatus();
      const isLoaded = status === "success";
      const shown = isLoaded ? ["AuthorizeBtnContainer", "operations"] : [];
      return React.createElement(
        "div",
        { className: "swagger-ui" },
        ["SvgAssets", "errors", ...shown].map(show),
        !isLoaded && status !== "failed" && React.createElement("p", null, "Loading the operations…"),
      );
    },
  },
});

// Focuses the first field of a dialog. Without this function, the last field with `autofocus`
// receives the focus.
const begin = (dialog) => {
  dialog.dataset.begun = "";
  dialog.querySelector("input")?.focus();
  for (const each of dialog.querySelectorAll("*")) each.scrollTop = 0;
};

// Makes examples focusable, so that the keyboard can scroll them, and names controls without a name.
const mend = () => {
  for (const each of place.querySelectorAll(".modal-ux:not([data-begun])")) begin(each);
  for (const each of place.querySelectorAll("pre:not([tabindex])")) each.tabIndex = 0;
  for (const each of place.querySelectorAll(".close-modal")) each.ariaLabel = "Close";
  for (const each of place.querySelectorAll(".body-param__text")) each.ariaLabel = "Request body";
  for (const row of place.querySelectorAll("[data-param-name]")) {
    for (const each of row.querySelectorAll("select, input")) each.ariaLabel = row.dataset.paramName;
  }
};
new MutationObserver(mend).observe(place, { childList: true, subtree: true });

place.className = "";
SwaggerUIBundle({
  url: place.dataset.description,
  domNode: place,
  plugins: [parts],
  layout: "PageLayout",
  docExpansion: "list",
  oauth2RedirectUrl: place.dataset.callback,
  // The validator would send a request to an external server.
  validatorUrl: null,
}).initOAuth({ usePkceWithAuthorizationCodeGrant: true });
