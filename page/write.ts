/** `npm run build`: builds the payment page and the console's script into a file, so that `serve` needs no bundler. */
import { writeFileSync } from 'node:fs'
import { buildPage } from './build.ts'
import { builtFile, digestSources } from './page.ts'

writeFileSync(builtFile, JSON.stringify({ sources: digestSources(), ...buildPage() }))
// A container image has no repository, so server/src/version.ts reads the commit from this file.
if (process.env.COMMIT) writeFileSync(new URL('commit', builtFile), `${process.env.COMMIT}\n`)
