/** Adds a button to each block of code that copies it. Without this script, or without a clipboard, nothing is missing. */
const shownForMs = 1_500

if (navigator.clipboard)
  for (const block of document.querySelectorAll('figure.code')) {
    const button = document.createElement('button')
    button.type = 'button'
    button.textContent = 'Copy'
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(block.querySelector('code').textContent)
        button.textContent = 'Copied'
      } catch {
        button.textContent = 'Not allowed'
      }
      setTimeout(() => {
        button.textContent = 'Copy'
      }, shownForMs)
    })
    block.append(button)
  }
