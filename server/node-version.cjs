// Loaded before the first TypeScript file (--require), so that an old Node gets a sentence instead of a stack trace. Plain
// old JavaScript: it must run on every version.
'use strict'
var needed = require('../package.json').engines.node.match(/\d+/)[0]
var actual = process.versions.node
if (parseInt(actual, 10) < parseInt(needed, 10)) {
  process.stderr.write(
    'Farthing needs Node ' +
      needed +
      ' or later, and this is Node ' +
      actual +
      ': install it from nodejs.org or with "nvm install ' +
      needed +
      '", then run the command again.\n',
  )
  process.exit(1)
}
