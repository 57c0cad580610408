// Runs a script of a media type as Zabbix does: as a function of `value`, with a synchronous
// HttpRequest.

import { execFileSync } from 'node:child_process'

class HttpRequest {
  #headers = []
  #status = 0

  addHeader(header) {
    this.#headers.push('--header', header)
  }

  post(url, body) {
    const options = ['--silent', '--noproxy', '*', '--write-out', '\n%{http_code}', '--data-binary', body]
    const lines = execFileSync('curl', [...options, ...this.#headers, url], { encoding: 'utf8' }).split('\n')
    this.#status = Number(lines.pop())
    return lines.join('\n')
  }

  getStatus() {
    return this.#status
  }
}

const { script, parameters } = JSON.parse(process.argv[2])
const run = new Function('value', 'HttpRequest', script)
process.stdout.write(JSON.stringify({ answer: run(JSON.stringify(parameters), HttpRequest) }))
