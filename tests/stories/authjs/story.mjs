// A browser at an application with Auth.js, which keeps cookies and does not follow redirects.
// It prints the redirect of a sign-in, or the session after the browser has returned.

import { pathToFileURL } from "node:url";

const { program, origin, cookies, returned } = JSON.parse(process.argv[2]);
const { handle } = await import(pathToFileURL(program));
const jar = new Map(Object.entries(cookies));

const send = async (path, form) => {
  const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
  const response = await handle(
    new Request(new URL(path, origin), {
      method: form ? "POST" : "GET",
      headers: { cookie, ...(form && { "content-type": "application/x-www-form-urlencoded" }) },
      body: form && new URLSearchParams(form),
    }),
  );
  for (const line of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
    jar.set(name, value);
  }
  return response;
};

const done = {};
if (returned) {
  done.location = (await send(returned)).headers.get("location");
  done.session = await (await send("/auth/session")).json();
} else {
  const { csrfToken } = await (await send("/auth/csrf")).json();
  done.location = (await send("/auth/signin/gitlab", { csrfToken })).headers.get("location");
}
console.log(JSON.stringify({ ...done, cookies: Object.fromEntries(jar) }));
