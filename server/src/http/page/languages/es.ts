import type { Language } from './language.ts'

export const spanish: Language = {
  tag: 'es',
  direction: 'ltr',
  name: 'Español',
  texts: {
    title: 'Pagar {amount} a {store}',
    payStore: 'Pagar a {store}',
    amountDue: 'Importe a pagar',
    amountExpected: 'Importe esperado',
    amountPaid: 'Importe pagado',
    amount: 'Importe',
    price: 'Precio',
    rate: 'Tipo de cambio',
    onNetwork: 'en {network}',
    order: 'Pedido',
    description: 'Concepto',
    payTo: 'Pagar a',
    paidTo: 'Pagado a',
    network: 'Red',
    validUntil: 'Pagar antes del',
    usdc: 'USDC es un dólar digital: un USDC vale un dólar estadounidense.',
    direct: 'Su dinero va directamente a la cartera de la tienda.',
    testMode: 'Prueba: sin dinero real',
    help: '¿Preguntas? Contacte con la tienda e indique {checkout}.',
    languages: 'Idiomas',

    chooseWay: '¿Cómo quiere pagar?',
    ways: {
      wallet: 'Cartera del navegador',
      phone: 'Teléfono',
      app: 'Aplicación de cartera',
      send: 'Exchange u otra cartera',
    },

    walletTitle: 'Pagar con una cartera de este navegador',
    walletAbout: 'Firma una sola vez en su cartera. No paga comisión de red.',
    payWith: 'Pagar con {wallet}',
    unnamedWallet: 'la cartera del navegador',
    noWallet: 'No hemos encontrado ninguna cartera en este navegador.',
    unsignable: 'Este pago no se puede firmar con una cartera en {network} en este momento.',
    usePhone: 'Usar el teléfono',
    needsScript:
      'Para pagar con una cartera de este navegador hace falta JavaScript, que aquí está desactivado.',

    phoneTitle: 'Pagar con el teléfono',
    phoneAbout:
      'Escanee este código con la cámara del teléfono. Esta página se abrirá allí y podrá pagar con la cartera de su teléfono. No paga comisión de red.',
    appsTitle: 'Pagar con una aplicación de cartera',
    appsAbout:
      'Toque su cartera. Esta página se abrirá en ella y firmará allí una sola vez. No paga comisión de red.',
    qrPage: 'Código QR que abre esta página',
    qrAddress: 'Código QR de la dirección de envío',
    qrPayment: 'Código QR que abre este pago en una cartera',

    sendTitle: 'Pagar desde un exchange u otra cartera',
    sendAbout:
      'Reservamos un importe exacto para usted y le mostramos la dirección a la que debe enviarlo. El importe puede superar el precio en una fracción de céntimo: así reconoce la tienda su pago. Su exchange o cartera puede cobrar su propia comisión.',
    sendButton: 'Mostrar importe y dirección',
    sendNetwork: '¿En qué red lo enviará?',
    sendOther: 'Usar otra red',
    sendDo: 'Envíe exactamente este importe a esta dirección',
    sendExact: 'Envíe todas las cifras. Indican a la tienda que este pago es suyo.',
    sendLinked:
      'Pague con una cartera de esta red, usando este código o enlace. Una transferencia hecha de otro modo, por ejemplo desde un exchange, no se puede asociar a su pedido.',
    sendLink: 'Abrir en una cartera',
    sendAmount: 'Importe exacto',
    sendAddress: 'Dirección',
    sendWarning: 'Envíe solo {asset} y solo en {network}. Cualquier otra cosa puede perderse.',
    sendFee:
      'Si su exchange descuenta la comisión del importe, súmela: debe llegar exactamente esta cantidad.',
    sendCheck: 'Después de pegarla, compruebe la dirección entera, también la parte central.',
    sendWatching:
      'Estamos pendientes de su transferencia. Puede cerrar esta página: el pago cuenta sin ella.',
    sentTitle: 'Ya lo he enviado',
    sentAbout:
      'Si envió dinero para este pago, no envíe nada más. Introduzca el hash de la transacción: la buscamos y se la mostramos a la tienda, que decide si la acepta o devuelve el dinero.',
    hashTitle: '¿Lo ha enviado y no pasa nada?',
    hashAbout:
      'Si ha llegado otro importe, no podemos saber que es suyo. No envíe nada más: introduzca el hash de la transacción y la tienda lo verá.',
    hashLabel: 'Hash de la transacción',
    hashButton: 'Buscar mi pago',
    copy: 'Copiar',
    copied: 'Copiado',

    account: 'Su cuenta',
    balance: 'Saldo',
    states: {
      connecting: { title: 'Conectando', text: 'Permita la conexión en su cartera.' },
      switching: {
        title: 'Cambio de red',
        text: 'Su cartera está en otra red. Permita que cambie a {network}.',
      },
      signing: {
        title: 'Firme en su cartera',
        text: 'Compruebe que su cartera muestra el mismo importe y la misma dirección, y firme.',
      },
      again: {
        title: 'Firme otra vez, por favor',
        text: 'En Solana una firma vale cerca de medio minuto, y esta llegó tarde. No se ha pagado nada. Su cartera vuelve a preguntar.',
      },
      settling: {
        title: 'Completando su pago',
        text: 'Tarda unos segundos. No tiene que firmar nada más.',
      },
      rejected: {
        title: 'No se ha pagado nada',
        text: 'Ha rechazado la solicitud en su cartera. Puede intentarlo de nuevo.',
      },
      pending: {
        title: 'Su cartera le está esperando',
        text: 'Su cartera ya tiene una solicitud abierta. Ábrala, respóndala e inténtelo de nuevo.',
      },
      funds: {
        title: 'No hay suficiente {asset}',
        text: 'Esta cuenta no tiene {amount} {asset} en {network}. Añada fondos o elija otra cuenta. No se ha pagado nada.',
      },
      smart: {
        title: 'Su cartera no puede firmar este pago',
        text: 'No admite este tipo de firma. No se ha pagado nada. Puede pagar con una transferencia normal: elija «Exchange u otra cartera».',
      },
      expired: {
        title: 'Se acabó el tiempo para firmar',
        text: 'En Solana una firma vale cerca de medio minuto. No se ha pagado nada. Elija su cartera de nuevo y firme poco después de que pregunte.',
      },
      undeployed: {
        title: 'Su cartera inteligente aún no está activa en {network}',
        text: 'Se activa con la primera transacción que envíe desde ella. No se ha pagado nada. Puede pagar con una transferencia normal, que también activa la cartera: elija «Exchange u otra cartera».',
      },
      chain: {
        title: 'Su cartera no está en {network}',
        text: 'Cambie a {network} en su cartera e inténtelo de nuevo. No se ha pagado nada.',
      },
      tab: {
        title: 'Continúe en la otra pestaña',
        text: 'Este pago está abierto en otra pestaña o ventana de este navegador. Termínelo allí, o cierre esa pestaña e inténtelo aquí de nuevo.',
      },
      changed: {
        title: 'Esta página no está actualizada',
        text: 'No se ha pagado nada. Vuelva a cargar la página antes de pagar.',
      },
      offline: {
        title: 'Sin conexión',
        text: 'Su pago firmado está guardado aquí y se enviará en cuanto vuelva la conexión. No pague otra vez.',
      },
      unavailable: {
        title: 'Un momento',
        text: 'El servicio está ocupado. Su pago firmado está guardado aquí y se reenviará automáticamente. No pague otra vez.',
      },
      failed: { title: 'No ha funcionado', text: 'No se ha pagado nada. Puede intentarlo de nuevo.' },
    },
    startOver: 'Empezar de nuevo',
    notices: {
      crowded:
        'Ahora mismo hay demasiadas personas enviando un importe parecido. Pague con una cartera o con el teléfono, o inténtelo más tarde.',
      in_progress: 'Ya se está completando un pago. No envíe nada, por favor.',
      closed: 'Este pago está cerrado. No envíe nada, por favor.',
      unavailable: 'Ahora mismo no es posible. Inténtelo de nuevo en un minuto.',
      looking: 'Estamos buscando su transacción. Esta página se actualizará cuando la encontremos.',
      not_found:
        'Todavía no encontramos esa transacción en {network}. Compruebe el hash o inténtelo de nuevo en un minuto.',
      invalid_hash: 'Eso no es un hash de transacción. Empieza por 0x y tiene 66 caracteres.',
      unmatched:
        'Hemos encontrado su transacción, pero no corresponde a este pago. Se la hemos mostrado a la tienda, que decidirá. No envíe nada más.',
    },
    announced: {
      title: 'Estamos buscando su pago',
      text: 'Esta página se actualizará cuando encontremos su transacción. Puede tardar unos minutos, y puede cerrar la página. Si no corresponde a este pago, la tienda decide. No pague otra vez.',
    },
    notSent: 'Todavía no he enviado nada',
    arrived: {
      title: 'La tienda tiene que revisar su transferencia',
      text: 'No envíe nada más hasta que la tienda le responda.',
    },
    noteTitle: 'Sobre el dinero que ha enviado',
    notes: {
      late: 'Han llegado {amount} {asset} cuando este pago ya estaba cerrado. Hemos avisado a la tienda, que decidirá.',
      underpaid:
        'Han llegado {amount} {asset}; se esperaban {due} {asset}. Hemos avisado a la tienda, que decidirá.',
      overpaid:
        'Han llegado {amount} {asset}. En total es más que los {due} {asset} esperados. Hemos avisado a la tienda. Pídale que le devuelva la diferencia.',
      unmatched:
        'Han llegado {amount} {asset}, pero no se han podido asociar a este pedido. Hemos avisado a la tienda, que decidirá.',
    },

    refund: 'Reembolso',
    refunds: {
      whole: { title: 'Pago devuelto', text: '{store} le ha devuelto su pago.' },
      part: '{store} le ha devuelto una parte de su pago.',
      arrived: 'Han llegado {amount} {asset}.',
      sent: '{amount} {asset} están en camino a {address}.',
      named: 'La tienda dice que ha enviado {amount} {asset} a {address}. Estamos buscando su transacción.',
      completed: 'Se han devuelto {amount} {asset} a {address}.',
      declared:
        'La tienda dice que ha devuelto {amount} {asset}. Nosotros no podemos verlo: si no le ha llegado nada, pregunte a la tienda.',
    },

    processing: {
      title: 'Su pago está en camino',
      text: 'Puede cerrar esta página: el pago se completará igualmente. No pague otra vez.',
    },
    completed: { title: 'Pago recibido', text: '¡Gracias! {store} ha recibido su pago.' },
    expired: {
      title: 'Este pago ha caducado',
      text: 'El plazo para pagar ha terminado: no envíe nada, por favor. Si todavía quiere su pedido, vuelva a la tienda.',
    },
    canceled: {
      title: 'Este pago se ha cancelado',
      text: 'La tienda lo ha cancelado: no envíe nada, por favor.',
    },
    notFound: {
      title: 'No encontramos este pago',
      text: 'Compruebe la dirección o pida a la tienda un enlace nuevo.',
    },
    unavailable: {
      title: 'Ahora no podemos mostrar esta página',
      text: 'El problema es nuestro y no se ha perdido nada. Vuelva a cargar la página en un minuto. Si ya ha pagado, no pague otra vez.',
    },

    receipt: 'Recibo',
    date: 'Fecha y hora',
    from: 'Pagado desde',
    transaction: 'Transacción',
    checkout: 'Referencia del pago',
    save: 'Guardar',
    mailIt: 'Enviármelo por correo',
    returnTo: 'Volver a {host}',
    leaving: 'Volverá a la tienda en {seconds} s.',
    stay: 'Quedarme aquí',
    checkAgain: 'Comprobar de nuevo',

    buyerReceipt: {
      number: 'Número de recibo',
      date: 'Fecha',
      taxId: 'Número fiscal {number}',
      print: 'Imprimir o guardar como PDF',
      back: 'Volver al pago',
      void: {
        title: 'Este recibo está anulado',
        text: 'La red ha deshecho el pago, así que este recibo ya no vale.',
      },
      waiting: {
        title: 'Su recibo se está preparando',
        text: 'Tendrá su número en un momento. Compruébelo de nuevo.',
      },
      email: 'Su correo electrónico',
      emailAbout: 'Lo usamos solo para este mensaje y no lo guardamos.',
      send: 'Enviar',
      said: {
        taken:
          'Si esta dirección no ha recibido ningún recibo nuestro en la última hora, el mensaje está en camino.',
        wrong: 'Eso no es una dirección de correo. Revísela e inténtelo de nuevo.',
        unavailable: 'Ahora no podemos enviar este recibo por correo. Imprímalo o guárdelo.',
      },
      store: 'Tienda',
      open: 'Para imprimir o guardar su recibo, abra esta página:',
      ignore:
        'Alguien escribió su dirección en la página de este pago. Si no fue usted, puede ignorar este mensaje.',
    },

    link: {
      pay: 'Continuar',
      about: 'A continuación elige cómo pagar.',
      howMuch: '¿Cuánto quiere pagar?',
      between: 'Entre {min} y {max}',
      mistake: 'Escriba un importe entre {min} y {max}, por ejemplo {example}.',
      outdated: 'Esta página llevaba un rato abierta o la tienda ha cambiado algo. Revísela y continúe.',
      paid: { title: 'Esto ya está pagado', text: 'Aquí no queda nada por pagar.' },
      closed: { title: 'Este enlace está cerrado', text: '{store} lo ha cerrado. No envíe nada.' },
      ended: {
        title: 'Este enlace ha terminado',
        text: 'El plazo para pagar ha pasado. No envíe nada. Pida a {store} un enlace nuevo.',
      },
      unpayable: {
        title: 'Ahora no se puede pagar a {store}',
        text: 'Vuelva a intentarlo más tarde o pregunte a la tienda.',
      },
      invoice: 'Factura',
      due: 'Fecha límite de pago',
      buyer: 'Facturado a',
      line: 'Concepto',
      quantity: 'Cantidad',
      each: 'Precio unitario',
      taxRate: 'Impuesto',
      net: 'Neto',
      tax: 'Impuesto {rate} %',
      total: 'Total',
    },

    addressRequest: {
      title: 'Reembolso de {store}',
      amount: 'Su reembolso',
      before: 'Responda antes del',
      help: '¿Preguntas? Contacte con la tienda e indique {refund}.',
      ask: {
        title: '¿Adónde debe ir su reembolso?',
        text: '{store} quiere devolverle {amount} {asset}. Escriba una dirección suya en {network}.',
      },
      label: 'Su dirección de {asset} en {network}',
      hint: 'En su cartera o exchange, elija recibir {asset} en {network} y copie la dirección que aparece allí. El dinero enviado a una dirección equivocada se pierde.',
      once: 'Solo puede escribir una dirección una vez.',
      button: 'Usar esta dirección',
      mistakes: {
        empty: 'Escriba la dirección que debe recibir su reembolso.',
        malformed:
          'Esa no es la dirección de una cartera en {network}. Copie la dirección completa e inténtelo de nuevo.',
        refused: 'Esta dirección no puede recibir su reembolso. Escriba la de una cartera suya.',
        unavailable:
          'Ahora no hemos podido comprobar la dirección y no se ha guardado nada. Inténtelo de nuevo en un minuto.',
      },
      named: {
        title: 'Último paso: dé su código a la tienda',
        text: 'Dé este código a {store} por el medio que usa siempre para hablar con ellos. Enviarán el reembolso cuando coincida.',
      },
      code: 'Su código',
      codeHint: 'Déselo a la tienda y a nadie más.',
      address: 'Su dirección',
      wrong: '¿Dirección equivocada? No dé el código. Pida a la tienda un enlace nuevo.',
      confirmed: {
        title: 'La tienda ha confirmado su dirección',
        text: 'El siguiente paso es el envío. Puede cerrar esta página y volver más tarde.',
      },
      returned: { title: 'Su reembolso se ha enviado', text: 'Se enviaron {amount} {asset} a su dirección.' },
      used: {
        title: 'Este enlace ya se ha usado',
        text: 'Se escribió una dirección en otro navegador. Si no fue usted, avise enseguida a {store} y no confirme ningún código.',
      },
      expired: { title: 'Este enlace ha caducado', text: 'Pida uno nuevo a {store}.' },
      canceled: {
        title: 'Este reembolso no se pagará aquí',
        text: 'La tienda lo ha cancelado o lo ha resuelto de otra manera. Si lo esperaba, pregunte a {store}.',
      },
      unknown: {
        title: 'Este enlace no funciona',
        text: 'Puede que falte una parte o que la tienda le haya enviado otro más reciente. Abra el último enlace o pregunte a la tienda.',
      },
      elsewhere: {
        title: 'Abra su enlace otra vez',
        text: 'Abra en este navegador el enlace de la tienda. La página necesita una cookie, así que las cookies deben estar permitidas.',
      },
    },
  },
}
