import type { Language } from './language.ts'

export const german: Language = {
  tag: 'de',
  direction: 'ltr',
  name: 'Deutsch',
  texts: {
    title: '{amount} an {store} zahlen',
    payStore: 'An {store} zahlen',
    amountDue: 'Zu zahlen',
    amountExpected: 'Erwarteter Betrag',
    amountPaid: 'Bezahlt',
    amount: 'Betrag',
    price: 'Preis',
    rate: 'Wechselkurs',
    onNetwork: 'auf {network}',
    order: 'Bestellung',
    description: 'Beschreibung',
    payTo: 'Zahlen an',
    paidTo: 'Gezahlt an',
    network: 'Netzwerk',
    validUntil: 'Zahlbar bis',
    usdc: 'USDC ist ein digitaler Dollar: Ein USDC ist einen US-Dollar wert.',
    direct: 'Ihr Geld geht direkt an die Wallet des Shops.',
    testMode: 'Test: kein echtes Geld',
    help: 'Fragen? Wenden Sie sich an den Shop und nennen Sie {checkout}.',
    languages: 'Sprachen',

    chooseWay: 'Wie möchten Sie zahlen?',
    ways: {
      wallet: 'Browser-Wallet',
      phone: 'Handy',
      app: 'Wallet-App',
      send: 'Börse oder andere Wallet',
    },

    walletTitle: 'Mit einer Wallet in diesem Browser zahlen',
    walletAbout: 'Sie unterschreiben einmal in Ihrer Wallet. Sie zahlen keine Netzwerkgebühr.',
    payWith: 'Mit {wallet} zahlen',
    unnamedWallet: 'Browser-Wallet',
    noWallet: 'In diesem Browser haben wir keine Wallet gefunden.',
    unsignable: 'Diese Zahlung kann auf {network} gerade nicht mit einer Wallet unterschrieben werden.',
    usePhone: 'Mit dem Handy zahlen',
    needsScript:
      'Um mit einer Wallet in diesem Browser zu zahlen, ist JavaScript nötig. Es ist hier ausgeschaltet.',

    phoneTitle: 'Mit dem Handy zahlen',
    phoneAbout:
      'Scannen Sie diesen Code mit der Kamera Ihres Handys. Diese Seite öffnet sich dort, und Sie zahlen mit der Wallet auf Ihrem Handy. Sie zahlen keine Netzwerkgebühr.',
    appsTitle: 'Mit einer Wallet-App zahlen',
    appsAbout:
      'Tippen Sie auf Ihre Wallet. Diese Seite öffnet sich darin, und Sie unterschreiben dort einmal. Sie zahlen keine Netzwerkgebühr.',
    qrPage: 'QR-Code, der diese Seite öffnet',
    qrAddress: 'QR-Code der Empfangsadresse',
    qrPayment: 'QR-Code, der diese Zahlung in einer Wallet öffnet',

    sendTitle: 'Von einer Börse oder anderen Wallet zahlen',
    sendAbout:
      'Wir reservieren einen genauen Betrag für Sie und zeigen Ihnen die Adresse, an die Sie ihn senden. Er kann um den Bruchteil eines Cents über dem Preis liegen: Daran erkennt der Shop Ihre Zahlung. Ihre Börse oder Wallet kann eine eigene Gebühr verlangen.',
    sendButton: 'Betrag und Adresse anzeigen',
    sendNetwork: 'In welchem Netzwerk senden Sie?',
    sendOther: 'Anderes Netzwerk verwenden',
    sendDo: 'Senden Sie genau diesen Betrag an diese Adresse',
    sendExact: 'Senden Sie alle Ziffern. Daran erkennt der Shop, dass diese Zahlung von Ihnen ist.',
    sendLinked:
      'Zahlen Sie über diesen Code oder Link mit einer Wallet in diesem Netzwerk. Eine Überweisung auf anderem Weg, etwa von einer Börse, lässt sich Ihrer Bestellung nicht zuordnen.',
    sendLink: 'In einer Wallet öffnen',
    sendAmount: 'Genauer Betrag',
    sendAddress: 'Adresse',
    sendWarning: 'Senden Sie nur {asset} und nur auf {network}. Alles andere kann verloren gehen.',
    sendFee:
      'Zieht Ihre Börse ihre Gebühr vom Betrag ab, schlagen Sie sie auf: Genau dieser Betrag muss ankommen.',
    sendCheck: 'Prüfen Sie nach dem Einfügen die ganze Adresse, auch die Mitte.',
    sendWatching:
      'Wir achten auf Ihre Überweisung. Sie können diese Seite schließen: Die Zahlung zählt auch ohne sie.',
    sentTitle: 'Ich habe schon gesendet',
    sentAbout:
      'Wenn Sie für diese Zahlung Geld gesendet haben, senden Sie nichts weiter. Geben Sie den Transaktions-Hash ein: Wir suchen die Transaktion und zeigen sie dem Shop. Er entscheidet, ob er sie annimmt oder das Geld zurücksendet.',
    hashTitle: 'Gesendet, aber nichts passiert?',
    hashAbout:
      'Wenn ein anderer Betrag angekommen ist, können wir ihn nicht zuordnen. Senden Sie nicht noch einmal: Geben Sie den Transaktions-Hash ein, dann sieht der Shop die Zahlung.',
    hashLabel: 'Transaktions-Hash',
    hashButton: 'Meine Zahlung suchen',
    copy: 'Kopieren',
    copied: 'Kopiert',

    account: 'Ihr Konto',
    balance: 'Guthaben',
    states: {
      connecting: {
        title: 'Verbindung wird hergestellt',
        text: 'Erlauben Sie die Verbindung in Ihrer Wallet.',
      },
      switching: {
        title: 'Netzwerk wechseln',
        text: 'Ihre Wallet ist in einem anderen Netzwerk. Erlauben Sie ihr, zu {network} zu wechseln.',
      },
      signing: {
        title: 'Unterschreiben Sie in Ihrer Wallet',
        text: 'Prüfen Sie, ob Ihre Wallet denselben Betrag und dieselbe Adresse zeigt, und unterschreiben Sie.',
      },
      again: {
        title: 'Bitte unterschreiben Sie noch einmal',
        text: 'Eine Unterschrift gilt auf Solana etwa eine halbe Minute, und diese kam zu spät. Es wurde nichts gezahlt. Ihre Wallet fragt noch einmal.',
      },
      settling: {
        title: 'Ihre Zahlung wird abgeschlossen',
        text: 'Das dauert einige Sekunden. Sie müssen nichts weiter unterschreiben.',
      },
      rejected: {
        title: 'Es wurde nichts gezahlt',
        text: 'Sie haben die Anfrage in Ihrer Wallet abgelehnt. Sie können es noch einmal versuchen.',
      },
      pending: {
        title: 'Ihre Wallet wartet auf Sie',
        text: 'In Ihrer Wallet ist schon eine Anfrage offen. Öffnen Sie die Wallet, beantworten Sie die Anfrage und versuchen Sie es dann noch einmal.',
      },
      funds: {
        title: 'Nicht genug {asset}',
        text: 'Dieses Konto hat auf {network} keine {amount} {asset}. Laden Sie es auf oder wählen Sie ein anderes Konto. Es wurde nichts gezahlt.',
      },
      smart: {
        title: 'Ihre Wallet kann diese Zahlung nicht unterschreiben',
        text: 'Sie unterstützt diese Art von Unterschrift nicht. Es wurde nichts gezahlt. Sie können mit einer gewöhnlichen Überweisung zahlen: Wählen Sie „Börse oder andere Wallet“.',
      },
      expired: {
        title: 'Die Zeit zum Unterschreiben ist abgelaufen',
        text: 'Eine Unterschrift gilt auf Solana etwa eine halbe Minute. Es wurde nichts gezahlt. Wählen Sie Ihre Wallet noch einmal, und unterschreiben Sie bald, nachdem sie fragt.',
      },
      undeployed: {
        title: 'Ihre Smart Wallet ist auf {network} noch nicht aktiv',
        text: 'Sie wird mit der ersten Transaktion aktiv, die Sie von ihr senden. Es wurde nichts gezahlt. Sie können mit einer gewöhnlichen Überweisung zahlen, die auch die Wallet aktiviert: Wählen Sie „Börse oder andere Wallet“.',
      },
      chain: {
        title: 'Ihre Wallet ist nicht auf {network}',
        text: 'Wechseln Sie in Ihrer Wallet zu {network} und versuchen Sie es dann noch einmal. Es wurde nichts gezahlt.',
      },
      tab: {
        title: 'Machen Sie im anderen Tab weiter',
        text: 'Diese Zahlung ist in einem anderen Tab oder Fenster dieses Browsers geöffnet. Schließen Sie sie dort ab, oder schließen Sie jenen Tab und versuchen Sie es hier noch einmal.',
      },
      changed: {
        title: 'Diese Seite ist nicht mehr aktuell',
        text: 'Es wurde nichts gezahlt. Laden Sie die Seite neu, bevor Sie zahlen.',
      },
      offline: {
        title: 'Keine Verbindung',
        text: 'Ihre unterschriebene Zahlung ist hier gespeichert und wird gesendet, sobald die Verbindung wieder da ist. Bitte zahlen Sie nicht noch einmal.',
      },
      unavailable: {
        title: 'Einen Moment bitte',
        text: 'Der Dienst ist ausgelastet. Ihre unterschriebene Zahlung ist hier gespeichert und wird automatisch erneut gesendet. Bitte zahlen Sie nicht noch einmal.',
      },
      failed: {
        title: 'Das hat nicht geklappt',
        text: 'Es wurde nichts gezahlt. Sie können es noch einmal versuchen.',
      },
    },
    startOver: 'Von vorn beginnen',
    notices: {
      crowded:
        'Gerade senden zu viele Menschen einen ähnlichen Betrag. Zahlen Sie mit einer Wallet oder dem Handy, oder versuchen Sie es später noch einmal.',
      in_progress: 'Eine Zahlung wird schon abgeschlossen. Bitte senden Sie nichts.',
      closed: 'Diese Zahlung ist geschlossen. Bitte senden Sie nichts.',
      unavailable: 'Das ist gerade nicht möglich. Bitte versuchen Sie es in einer Minute noch einmal.',
      looking: 'Wir suchen Ihre Transaktion. Diese Seite wird aktualisiert, sobald wir sie finden.',
      not_found:
        'Wir finden diese Transaktion auf {network} noch nicht. Prüfen Sie den Hash oder versuchen Sie es in einer Minute noch einmal.',
      invalid_hash: 'Das ist kein Transaktions-Hash. Er beginnt mit 0x und hat 66 Zeichen.',
      unmatched:
        'Wir haben Ihre Transaktion gefunden, aber sie passt nicht zu dieser Zahlung. Wir haben sie dem Shop gezeigt, und er wird entscheiden. Bitte senden Sie nichts weiter.',
    },
    announced: {
      title: 'Wir suchen Ihre Zahlung',
      text: 'Diese Seite wird aktualisiert, sobald wir Ihre Transaktion finden. Das kann einige Minuten dauern, und Sie können die Seite schließen. Passt sie nicht zu dieser Zahlung, entscheidet der Shop. Bitte zahlen Sie nicht noch einmal.',
    },
    notSent: 'Ich habe noch nichts gesendet',
    arrived: {
      title: 'Der Shop muss sich Ihre Überweisung ansehen',
      text: 'Bitte senden Sie nichts weiter, bis Sie vom Shop gehört haben.',
    },
    noteTitle: 'Zu dem Geld, das Sie gesendet haben',
    notes: {
      late: '{amount} {asset} sind angekommen, als diese Zahlung schon geschlossen war. Wir haben den Shop informiert. Er wird entscheiden.',
      underpaid:
        '{amount} {asset} sind angekommen; erwartet wurden {due} {asset}. Wir haben den Shop informiert. Er wird entscheiden.',
      overpaid:
        '{amount} {asset} sind angekommen. Insgesamt ist das mehr als die erwarteten {due} {asset}. Wir haben den Shop informiert. Bitten Sie ihn um die Differenz.',
      unmatched:
        '{amount} {asset} sind angekommen, ließen sich dieser Bestellung aber nicht zuordnen. Wir haben den Shop informiert. Er wird entscheiden.',
    },

    refund: 'Rückerstattung',
    refunds: {
      whole: { title: 'Zahlung zurückerstattet', text: '{store} hat Ihre Zahlung zurückgesendet.' },
      part: '{store} hat einen Teil Ihrer Zahlung zurückerstattet.',
      arrived: '{amount} {asset} sind angekommen.',
      sent: '{amount} {asset} sind unterwegs an {address}.',
      named: 'Laut dem Shop sind {amount} {asset} an {address} gesendet. Wir suchen die Transaktion.',
      completed: '{amount} {asset} wurden an {address} zurückerstattet.',
      declared:
        'Laut dem Shop wurden {amount} {asset} zurückerstattet. Wir selbst können das nicht sehen: Wenn nichts angekommen ist, fragen Sie den Shop.',
    },

    processing: {
      title: 'Ihre Zahlung ist unterwegs',
      text: 'Sie können diese Seite schließen: Die Zahlung wird auch ohne sie abgeschlossen. Bitte zahlen Sie nicht noch einmal.',
    },
    completed: { title: 'Zahlung erhalten', text: 'Vielen Dank! {store} hat Ihre Zahlung erhalten.' },
    expired: {
      title: 'Diese Zahlung ist abgelaufen',
      text: 'Die Zeit zum Zahlen ist vorbei. Bitte senden Sie nichts. Wenn Sie noch bestellen möchten, gehen Sie zurück zum Shop.',
    },
    canceled: {
      title: 'Diese Zahlung wurde storniert',
      text: 'Der Shop hat sie storniert. Bitte senden Sie nichts.',
    },
    notFound: {
      title: 'Wir finden diese Zahlung nicht',
      text: 'Prüfen Sie die Adresse oder bitten Sie den Shop um einen neuen Link.',
    },
    unavailable: {
      title: 'Wir können diese Seite gerade nicht anzeigen',
      text: 'Das Problem liegt bei uns, und nichts ist verloren. Bitte laden Sie die Seite in einer Minute neu. Wenn Sie schon gezahlt haben, zahlen Sie nicht noch einmal.',
    },

    receipt: 'Beleg',
    date: 'Datum und Uhrzeit',
    from: 'Gezahlt von',
    transaction: 'Transaktion',
    checkout: 'Zahlungsreferenz',
    save: 'Speichern',
    mailIt: 'Per E-Mail senden',
    returnTo: 'Zurück zu {host}',
    leaving: 'In {seconds} s geht es zurück zum Shop.',
    stay: 'Hier bleiben',
    checkAgain: 'Erneut prüfen',

    buyerReceipt: {
      number: 'Belegnummer',
      date: 'Datum',
      taxId: 'Steuernummer {number}',
      print: 'Drucken oder als PDF speichern',
      back: 'Zurück zur Zahlung',
      void: {
        title: 'Dieser Beleg ist ungültig',
        text: 'Das Netzwerk hat die Zahlung rückgängig gemacht, deshalb gilt dieser Beleg nicht mehr.',
      },
      waiting: {
        title: 'Ihr Beleg wird erstellt',
        text: 'Er bekommt gleich seine Nummer. Bitte prüfen Sie es erneut.',
      },
      email: 'Ihre E-Mail-Adresse',
      emailAbout: 'Wir verwenden sie nur für diese eine E-Mail und speichern sie nicht.',
      send: 'Senden',
      said: {
        taken:
          'Wenn diese Adresse in der letzten Stunde keinen Beleg von uns bekommen hat, ist die E-Mail unterwegs.',
        wrong: 'Das ist keine E-Mail-Adresse. Prüfen Sie sie und versuchen Sie es erneut.',
        unavailable:
          'Wir können diesen Beleg gerade nicht per E-Mail senden. Drucken oder speichern Sie ihn stattdessen.',
      },
      store: 'Shop',
      open: 'Um Ihren Beleg zu drucken oder zu speichern, öffnen Sie diese Seite:',
      ignore:
        'Jemand hat Ihre Adresse auf der Seite dieser Zahlung eingegeben. Wenn Sie das nicht waren, können Sie diese E-Mail ignorieren.',
    },

    link: {
      pay: 'Weiter',
      about: 'Als Nächstes wählen Sie, wie Sie zahlen.',
      howMuch: 'Wie viel möchten Sie zahlen?',
      between: 'Zwischen {min} und {max}',
      mistake: 'Geben Sie einen Betrag zwischen {min} und {max} ein, zum Beispiel {example}.',
      outdated:
        'Diese Seite war länger offen, oder der Shop hat etwas geändert. Bitte prüfen Sie sie und fahren Sie fort.',
      paid: { title: 'Das ist bezahlt', text: 'Hier ist nichts mehr zu zahlen.' },
      closed: {
        title: 'Dieser Link ist geschlossen',
        text: '{store} hat ihn geschlossen. Bitte senden Sie nichts.',
      },
      ended: {
        title: 'Dieser Link ist abgelaufen',
        text: 'Die Zeit zum Zahlen ist vorbei. Bitte senden Sie nichts. Bitten Sie {store} um einen neuen Link.',
      },
      unpayable: {
        title: '{store} kann gerade nicht bezahlt werden',
        text: 'Bitte versuchen Sie es später noch einmal, oder fragen Sie den Shop.',
      },
      invoice: 'Rechnung',
      due: 'Fällig am',
      buyer: 'Rechnung an',
      line: 'Posten',
      quantity: 'Menge',
      each: 'Einzelpreis',
      taxRate: 'Steuer',
      net: 'Netto',
      tax: 'Steuer {rate} %',
      total: 'Summe',
    },

    addressRequest: {
      title: 'Rückzahlung von {store}',
      amount: 'Ihre Rückzahlung',
      before: 'Antworten Sie bis',
      help: 'Fragen? Wenden Sie sich an den Shop und nennen Sie {refund}.',
      ask: {
        title: 'Wohin soll Ihre Rückzahlung gehen?',
        text: '{store} möchte Ihnen {amount} {asset} zurückzahlen. Geben Sie eine eigene Adresse auf {network} ein.',
      },
      label: 'Ihre {asset}-Adresse auf {network}',
      hint: 'Wählen Sie in Ihrer Wallet oder Börse, dass Sie {asset} auf {network} empfangen möchten, und kopieren Sie die Adresse von dort. Geld, das an eine falsche Adresse geht, ist verloren.',
      once: 'Sie können nur einmal eine Adresse eingeben.',
      button: 'Diese Adresse verwenden',
      mistakes: {
        empty: 'Geben Sie die Adresse ein, die Ihre Rückzahlung erhalten soll.',
        malformed:
          'Das ist nicht die Adresse einer Wallet auf {network}. Kopieren Sie die ganze Adresse und versuchen Sie es noch einmal.',
        refused:
          'Diese Adresse kann Ihre Rückzahlung nicht erhalten. Geben Sie die Adresse einer eigenen Wallet ein.',
        unavailable:
          'Wir konnten die Adresse gerade nicht prüfen und haben nichts gespeichert. Bitte versuchen Sie es in einer Minute noch einmal.',
      },
      named: {
        title: 'Letzter Schritt: Nennen Sie dem Shop Ihren Code',
        text: 'Nennen Sie {store} diesen Code auf dem Weg, auf dem Sie sonst Kontakt haben. Stimmt er, wird die Rückzahlung gesendet.',
      },
      code: 'Ihr Code',
      codeHint: 'Nennen Sie ihn nur dem Shop und niemandem sonst.',
      address: 'Ihre Adresse',
      wrong: 'Falsche Adresse? Geben Sie den Code nicht weiter. Bitten Sie den Shop um einen neuen Link.',
      confirmed: {
        title: 'Der Shop hat Ihre Adresse bestätigt',
        text: 'Als Nächstes wird Ihre Rückzahlung gesendet. Sie können diese Seite schließen und später wiederkommen.',
      },
      returned: {
        title: 'Ihre Rückzahlung wurde gesendet',
        text: '{amount} {asset} gingen an Ihre Adresse.',
      },
      used: {
        title: 'Dieser Link wurde schon verwendet',
        text: 'Eine Adresse wurde in einem anderen Browser eingegeben. Waren Sie das nicht, sagen Sie {store} sofort Bescheid und bestätigen Sie keinen Code.',
      },
      expired: { title: 'Dieser Link ist abgelaufen', text: 'Bitten Sie {store} um einen neuen.' },
      canceled: {
        title: 'Diese Rückzahlung findet hier nicht statt',
        text: 'Der Shop hat sie storniert oder auf andere Weise erledigt. Wenn Sie sie erwartet haben, fragen Sie {store}.',
      },
      unknown: {
        title: 'Dieser Link funktioniert nicht',
        text: 'Vielleicht fehlt ein Teil, oder der Shop hat Ihnen einen neueren geschickt. Öffnen Sie den neuesten Link oder fragen Sie den Shop.',
      },
      elsewhere: {
        title: 'Bitte öffnen Sie Ihren Link noch einmal',
        text: 'Öffnen Sie den Link des Shops in diesem Browser. Die Seite braucht ein Cookie, Cookies müssen also erlaubt sein.',
      },
    },
  },
}
