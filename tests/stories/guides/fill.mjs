// Fills in a template as Uptime Kuma does, which uses LiquidJS with its defaults.

import { Liquid } from 'liquidjs'

const { template, context } = JSON.parse(process.argv[2])
const filled = await new Liquid().parseAndRender(template, context)
process.stdout.write(JSON.stringify({ filled }))
