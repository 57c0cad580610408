// Shows the description of the API by Swagger UI, in the place of the plain list.
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

// The parts that fit into a page which has a title and a main landmark of its own.
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

// The dialog would begin at the last of its fields that want the focus.
const begin = (dialog) => {
  dialog.dataset.begun = "";
  dialog.querySelector("input")?.focus();
  for (const each of dialog.querySelectorAll("*")) each.scrollTop = 0;
};

// Examples scroll sideways, so the keyboard has to reach them; some controls have no name.
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
  // It would ask a server elsewhere.
  validatorUrl: null,
}).initOAuth({ usePkceWithAuthorizationCodeGrant: true });
